import assert from 'node:assert/strict';
import test from 'node:test';
import { startServer } from '../helpers/server.ts';

test('a key is completed beside its claim: no index is touched a second time', async (t) => {
  const server = await startServer(t, { env: { WORKERS: '0' } });
  const count = 200;
  for (let i = 0; i < count; i += 1) {
    await server.call('POST /v1/orders', { key: `k-${i}`, body: { cents: 1, item: 'an ordinary item' } });
  }
  // Every session reports on its own, within a second of its last statement.
  for (;;) {
    const [seen] = await server.db.query(
      (sql) => sql<{ updated: number; hot: number }[]>`
        select n_tup_upd::int as updated, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'idem'`,
    );
    if (seen !== undefined && seen.updated >= count) {
      assert.ok(seen.hot / seen.updated > 0.95, `${seen.hot} of ${seen.updated} updates were heap-only`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

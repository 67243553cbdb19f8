import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AnswerEnd, OpenRoute } from './app.ts';
import type { Database } from './db/pool.ts';
import type { SweepCounts } from './idempotency/sweep.ts';
import type { ModelCall, Piece, Provider } from './llm/provider.ts';

/** Where the parts of a server report what is counted. No label names a tenant or a key. */
export type Metrics = {
  onAnswer(end: AnswerEnd): void;
  takenOver(): void;
  fenced(): void;
  swept(counts: SweepCounts): void;
  /** The provider, with its calls and tokens counted. */
  counted(provider: Provider): Provider;
  /** Gauges that are read when they are asked for. */
  watch(parts: { db: Database; parked(): number; owned(): number; openStreams(): number }): void;
  readonly route: OpenRoute;
};

/** Seconds: from a replay on loopback to a rewrite that thinks for a minute. */
const durationBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** The rows of a scrape's estimate of keys by state, at about this many sampled. */
const sampledRows = 20_000;

/** Metrics in Prometheus' format under `retry_safe_…` (and Node's own: CPU, memory, event-loop lag). */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Counter({ name: `retry_safe_${name}`, help, labelNames, registers });
  const gauge = (
    name: string,
    help: string,
    collect: (this: Gauge<string>) => void | Promise<void>,
    labelNames: string[] = [],
  ) => new Gauge({ name: `retry_safe_${name}`, help, labelNames, registers, collect });

  const requests = counter('requests_total', 'Answered requests by route, status and key outcome.', [
    'route',
    'status',
    'key_outcome',
  ]);
  const duration = new Histogram({
    name: 'retry_safe_request_duration_seconds',
    help: 'From the first byte of the head to the end of the answer.',
    labelNames: ['route'] as const,
    buckets: durationBuckets,
    registers,
  });
  const takeovers = counter('key_takeovers_total', 'Keys taken over from an owner that let go or was lost.');
  const fenced = counter('key_fenced_total', 'Late owners whose commit was refused.');
  const expired = counter('keys_expired_total', 'Stored answers whose body was deleted at the end of their retention.');
  const deleted = counter('keys_deleted_total', 'Tombstones deleted.');
  const calls = counter('model_calls_total', 'Calls to the model provider by how they ended.', ['end']);
  const tokens = counter('model_tokens_total', 'Tokens by kind, as the provider says, else counted pieces.', ['kind']);
  const avoided = counter(
    'model_calls_avoided_total',
    'Answers of paid routes that were replayed instead of paid again.',
  );
  const wasted = counter(
    'model_calls_wasted_total',
    'Paid answers that lost to a newer version; their draft was handed back.',
  );

  return {
    onAnswer({ route, status, ms, keyOutcome, pays }) {
      requests.inc({ route, status: String(status), key_outcome: keyOutcome });
      duration.observe({ route }, ms / 1_000);
      if (pays && keyOutcome === 'replayed') avoided.inc();
      if (pays && status === 412 && (keyOutcome === 'first' || keyOutcome === 'taken_over')) wasted.inc();
    },
    takenOver: () => takeovers.inc(),
    fenced: () => fenced.inc(),
    swept(counts) {
      expired.inc(counts.expired);
      deleted.inc(counts.deleted);
    },
    counted: (provider) => ({
      ...provider,
      name: provider.name,
      generate: (call) =>
        countedCall(
          provider,
          call,
          (end) => calls.inc({ end }),
          (kind, count) => tokens.inc({ kind }, count),
        ),
    }),
    watch({ db, parked, owned, openStreams }) {
      gauge('db_connections_in_use', 'Pooled connections that are lent.', function () {
        this.set(db.stats().inUse);
      });
      gauge('db_connections_max', 'Pooled connections at most.', function () {
        this.set(db.stats().max);
      });
      gauge('db_waiting', 'Pieces of work that wait for a connection.', function () {
        this.set(db.stats().waiting);
      });
      gauge('db_wait_seconds_sum', 'What was waited for connections, in sum.', function () {
        this.set(db.stats().waitedMs / 1_000);
      });
      gauge('db_sessions_lost', 'Sessions lost or cut since the start.', function () {
        this.set(db.stats().lost);
      });
      gauge('keys_owned', 'Keys whose work runs in this process.', function () {
        this.set(owned());
      });
      gauge('duplicates_parked', 'Duplicates that wait by Prefer: wait.', function () {
        this.set(parked());
      });
      gauge('streams_open', 'Event streams that are being read.', function () {
        this.set(openStreams());
      });
      gauge(
        'rows',
        'Rows by table and state; keys are estimated from a sample.',
        async function () {
          // The database may be away: a scrape that misses this gauge says more than one that fails.
          for (const { table_name, state, rows } of await countRows(db).catch(() => [])) {
            this.set({ table: table_name, state }, rows);
          }
        },
        ['table', 'state'],
      );
    },
    route: {
      path: '/metrics',
      async answer() {
        const body = Buffer.from(await registry.metrics());
        return { status: 200, headers: { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }, body };
      },
    },
  };
}

async function* countedCall(
  provider: Provider,
  call: ModelCall,
  ended: (end: string) => void,
  used: (kind: string, count: number) => void,
): AsyncIterable<Piece> {
  let pieces = 0;
  let end = 'abandoned';
  try {
    for await (const piece of provider.generate(call)) {
      if (piece.kind === 'text') pieces += piece.tokens ?? 1;
      else if (piece.cached) end = 'cached';
      else {
        end = piece.finish;
        used('prompt', piece.usage?.promptTokens ?? 0);
        used('completion', piece.usage?.completionTokens ?? pieces);
      }
      yield piece;
    }
  } catch (error) {
    end = error instanceof Error && 'kind' in error ? String(error.kind) : 'failed';
    throw error;
  } finally {
    if (end !== 'stop' && end !== 'length' && end !== 'cached') used('completion', pieces);
    ended(end);
  }
}

/** Keys by state from a sample of the table's pages, scaled up; jobs that have not ended by status. */
async function countRows(db: Database): Promise<readonly { table_name: string; state: string; rows: number }[]> {
  const [table] = await db.query(
    (sql) => sql<{ rows: number }[]>`select reltuples::float8 as rows from pg_class where oid = 'idem'::regclass`,
  );
  const percent = Math.min(100, (100 * sampledRows) / Math.max(table?.rows ?? 0, 1));
  return await db.query(
    (sql) => sql<{ table_name: string; state: string; rows: number }[]>`
      select 'idem' as table_name, state, round(count(*) * 100 / ${percent}::float8)::float8 as rows
        from idem tablesample system (${percent}::float8) group by state
      union all
      select 'jobs', status, count(*)::float8 from jobs where status in ('queued', 'running') group by status`,
  );
}

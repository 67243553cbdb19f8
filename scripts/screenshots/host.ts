import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { signToken } from '../../src/auth/tokens.ts';
import { parseConfig } from '../../src/config.ts';
import { firstCredits } from '../../src/credits/books.ts';
import { startEmbedded } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createLog } from '../../src/log.ts';
import { serve } from '../../src/serve.ts';
import { temporaryFolder } from '../../test/helpers/database.ts';

const secret = 'the secret of a server that lives for a minute';
const people = [
  { tenant: 'acme', sub: 'alice' },
  { tenant: 'globex', sub: 'bob' },
  { tenant: 'acme', sub: 'carol' },
];

/** A server on a database of its own in a temporary folder, as a first `npm start` has it. */
export async function startHost(): Promise<{ readonly url: string; readonly folder: string; stop(): Promise<void> }> {
  const folder = temporaryFolder();
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const database = await startEmbedded({ dataDir: join(folder, 'data'), fsync: false });
    ends.push(database.stop);
    await migrate(database.url);
    const serving = await serve({
      config: parseConfig({ PORT: '0', SHUTDOWN_GRACE_MS: '1000' }),
      databaseUrl: database.url,
      auth: { secret },
      log: createLog('error', (line) => process.stderr.write(line)),
      seedCredits: firstCredits,
      developmentTokens: () =>
        Promise.all(
          people.map(async (who) => ({
            ...who,
            token: await signToken(secret, { ...who, scope: 'credits:write' }, 3_600),
          })),
        ),
    });
    ends.push(serving.stop);
    return { url: serving.url, folder, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

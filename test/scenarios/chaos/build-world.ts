import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { bundleProgram } from '../../../bench/stage/bundle.ts';
import { startPrivateServer, temporaryFolder } from '../../helpers/database.ts';
import { startFaultProxy } from '../../helpers/fault-proxy.ts';
import type { ModelFault } from './intents.ts';
import { proxyFault } from './network.ts';
import type { Random } from './random.ts';
import type { Scope } from './scope.ts';
import { createSlot } from './server-slot.ts';
import { serverEnv } from './timing.ts';
import { startWire } from './wire.ts';
import type { World } from './world.ts';

/** What a world tells of itself. */
export type WorldEvents = {
  /** The servers' logs, a line. */
  onLine(line: string): void;
  onCrash(sentence: string): void;
  onModelTrouble(trouble: ModelFault | undefined): void;
};

/** The server of the bench. */
export const serverEntry = fileURLToPath(new URL('./server.ts', import.meta.url));

const names = ['server-1', 'server-2'] as const;

/** Two server processes on one Postgres, with everything between them and their clients that can be broken. */
export async function buildWorld(
  scope: Scope,
  random: Random,
  fence: 'kept' | 'out',
  events: WorldEvents,
): Promise<World> {
  const folder = temporaryFolder();
  scope.t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = await bundleProgram(serverEntry, folder);
  // What was acknowledged is in the system's hands, so that ending Postgres at once loses nothing of it.
  const server = await startPrivateServer({ settings: { synchronous_commit: 'on' } });
  scope.t.after(() => server.remove());
  const databaseUrl = await server.createDatabase();
  const wire = await startWire(server.current.port);
  scope.t.after(() => wire.close());
  const sql = postgres(databaseUrl, { max: 2, fetch_types: false, connect_timeout: 2, onnotice: () => {} });
  scope.t.after(() => sql.end({ timeout: 1 }));

  const throughWire = new URL(databaseUrl);
  throughWire.port = String(wire.port);
  const proxies = await Promise.all(
    names.map(async () => {
      const proxy = await startFaultProxy(scope.t, 'http://127.0.0.1:1');
      proxy.decide((_line, headers) => proxyFault(headers));
      return proxy;
    }),
  );
  const env = { ...serverEnv, DATABASE_URL: throughWire.href, CHAOS_FENCE: fence };
  const slots = names.map((name, i) =>
    createSlot(name, program, env, { ...events, onUrl: (url) => proxies[i]?.retarget(url) }),
  );
  for (const slot of slots) scope.t.after(() => slot.end('SIGKILL'));
  await Promise.all(slots.map((slot) => slot.start()));
  return { random, slots, proxies, postgres: server, wire, sql, troubleModel: events.onModelTrouble };
}

import type postgres from 'postgres';
import type { PrivateServer } from '../../helpers/database.ts';
import type { FaultProxy } from '../../helpers/fault-proxy.ts';
import type { ModelFault } from './intents.ts';
import type { Random } from './random.ts';
import type { ServerSlot } from './server-slot.ts';
import type { Wire } from './wire.ts';

/** All that can be broken. */
export type World = {
  readonly random: Random;
  readonly slots: readonly ServerSlot[];
  /** Before each server, for its clients. */
  readonly proxies: readonly FaultProxy[];
  readonly postgres: PrivateServer;
  /** Between the servers and Postgres. */
  readonly wire: Wire;
  /** A connection of the bench's own, past the wire. */
  readonly sql: postgres.Sql;
  /** Prompts ask for this trouble from now on. */
  troubleModel(trouble: ModelFault | undefined): void;
};

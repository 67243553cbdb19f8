import type { Config } from '../../src/config.ts';
import type { Database } from '../../src/db/pool.ts';
import type { Mounted } from '../../src/handler.ts';
import { hashedDocProcedures } from './hashed-doc.ts';
import { pingProcedures } from './ping.ts';
import { plainOrderProcedures } from './plain-order.ts';

/** What an arm may use of the server it is mounted into. */
export type ArmParts = { readonly db: Database; readonly config: Config };

/** Every arm that is compared with a route of the server, mounted through the same table and the same pipeline. */
export function benchProcedures({ db }: ArmParts): Mounted[] {
  return [...pingProcedures(), ...plainOrderProcedures(), ...hashedDocProcedures(db)];
}

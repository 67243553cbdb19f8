import type { Database } from '../../src/db/pool.ts';
import type { Mounted } from '../../src/handler.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { hashedDocProcedures } from './hashed-doc.ts';
import { lockedRewriteProcedures } from './locked-rewrite.ts';
import { pingProcedures } from './ping.ts';
import { plainOrderProcedures } from './plain-order.ts';
import { queuedRewriteProcedures } from './queued-rewrite.ts';

/** What an arm may use of the server it is mounted into. */
export type ArmParts = {
  readonly db: Database;
  readonly provider: Provider;
  /** Plants a lost update into the row-lock arm. */
  readonly losesUpdates: boolean;
};

/** Every arm that is compared with a route of the server, mounted through the same table and the same pipeline. */
export function benchProcedures({ db, provider, losesUpdates }: ArmParts): Mounted[] {
  return [
    ...pingProcedures(),
    ...plainOrderProcedures(),
    ...hashedDocProcedures(db),
    ...lockedRewriteProcedures(provider, losesUpdates),
    ...queuedRewriteProcedures(db, provider),
  ];
}

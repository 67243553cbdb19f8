import type postgres from 'postgres';
import { type Address, addressesOf } from './dial.ts';
import { type Backend, openSession, type Session } from './session.ts';
import { isRefused, isSessionLost } from './sqlstate.ts';
import { runTransaction, type Sent, type TransactionState, type Tx } from './transaction.ts';
import { DatabaseUnavailable, type UnavailableReason } from './unavailable.ts';
import { createWaitingLine } from './waiting-line.ts';

export type { Orm, Tx } from './transaction.ts';
export { DatabaseUnavailable } from './unavailable.ts';

/** A session is replaced after so long, so that neither its memory nor a moved address stays for ever. */
const sessionLifetimeMs = 30 * 60_000;

export type DatabaseOptions = {
  readonly url: string;
  /** Connections at most. */
  readonly max: number;
  /** Named prepared statements; false behind PgBouncer in transaction mode. */
  readonly prepare: boolean;
  /** Bounds the wait for a connection, and by itself the statement or the whole transaction (a new connection included). */
  readonly queryTimeoutMs: number;
  /** The schema that `migrateKeys` was given; absent where `migrate` has made all tables. */
  readonly keySchema?: string;
};

/** How the pool is doing. Counters only grow. */
export type DatabaseStats = {
  readonly max: number;
  readonly open: number;
  readonly inUse: number;
  readonly waiting: number;
  /** How long the one at the head of the line has waited, in milliseconds; 0 when nobody waits. */
  readonly longestWaitMs: number;
  /** Statements and transactions that got a connection, and what they waited for it in sum. */
  readonly served: number;
  readonly waitedMs: number;
  /** Sessions opened, and of these the ones given up (lost, or cut at the deadline). */
  readonly opened: number;
  readonly lost: number;
};

/** Where the tables of the key (`idem`, `buckets`) are: a schema of their own, or wherever the search path finds them. */
export type KeyHome = { readonly keySchema?: string | undefined };

/** One statement at a time: all that the protocol of the key asks of a database, be it ours or a guest's pool. */
export type Queries = KeyHome & {
  /**
   * Runs one raw statement, autocommitted. The statement must be made by the given `sql`, and `build` must make only one
   * (fragments aside).
   */
  query<T extends readonly (object | undefined)[]>(
    build: (sql: postgres.Sql) => postgres.PendingQuery<T>,
  ): Promise<postgres.RowList<T>>;
};

/** Postgres, for the whole process. Whatever is not the statement's own fault rejects with `DatabaseUnavailable`. */
export type Database = Queries & {
  /**
   * Runs one transaction (read committed). It fails whole on the first error, also on one that the callback caught; what
   * the callback throws is what the caller gets.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  stats(): DatabaseStats;
  /** Refuses whatever comes or waits, lets what runs end for `graceMs`, then cuts it. */
  close(graceMs: number): Promise<void>;
};

/** Opens the pool; connections are made when they are needed. */
export function openDatabase(options: DatabaseOptions): Database {
  const { url, max, prepare, queryTimeoutMs, keySchema } = options;
  // Whoever still lives has cut its transaction by then.
  const silenceMs = 2 * queryTimeoutMs;
  const addresses = addressesOf(url);
  const idle: Session[] = [];
  const line = createWaitingLine<Session>(queryTimeoutMs, () => unavailable('wait'));
  const inUse = new Set<Piece>();
  const farewells: Promise<void>[] = [];
  let open = 0;
  let host = 0;
  let closing: Promise<void> | undefined;
  let allBack: (() => void) | undefined;
  const counters = { served: 0, opened: 0, lost: 0 };

  const fresh = (): Session => {
    open += 1;
    counters.opened += 1;
    return openSession({ url, prepare, silenceMs, address: addresses[host % addresses.length] as Address });
  };

  const take = (): Session | Promise<Session> => {
    if (closing !== undefined) throw unavailable('closed');
    const session = idle.pop();
    if (session !== undefined) return session;
    return open < max ? fresh() : line.wait();
  };

  const giveBack = (session: Session): void => {
    const usable = session.lost === undefined && performance.now() - session.openedAt < sessionLifetimeMs;
    if (!usable || closing !== undefined) {
      open -= 1;
      if (session.lost === undefined) farewells.push(session.end());
      if (line.length > 0) line.serve(fresh());
      return;
    }
    if (line.length > 0) {
      line.serve(session);
      return;
    }
    session.onLost = () => {
      idle.splice(idle.indexOf(session), 1);
      open -= 1;
      counters.lost += 1;
      session.cut();
    };
    idle.push(session);
  };

  /** Lends a session for one piece of work, at most until the deadline; whatever happens the slot is free afterwards. */
  const use = async <T>(work: (session: Session, used: Used) => Promise<T>): Promise<T> => {
    const taken = take();
    const session = taken instanceof Promise ? await taken : taken;
    counters.served += 1;
    const used: Used = { statement: undefined, transaction: undefined };
    let timer: NodeJS.Timeout | undefined;
    const piece: Piece = { cut: () => {} };
    inUse.add(piece);
    try {
      return await new Promise<T>((resolve, reject) => {
        let givenUp = false;
        const giveUp = (reason: UnavailableReason, cause?: unknown) => {
          if (givenUp) return;
          givenUp = true;
          const sent = sentBy(used);
          const failure = unavailable(reason === 'lost' && sent === undefined ? 'connect' : reason, used, cause);
          if (sent === undefined) host += 1;
          if (used.transaction) used.transaction.failed ??= failure;
          session.onLost = undefined;
          counters.lost += 1;
          session.cut(reason === 'deadline' ? sent : undefined);
          reject(failure);
        };
        session.onLost = (cause) => giveUp('lost', cause);
        piece.cut = () => giveUp('closed');
        timer = setTimeout(giveUp, queryTimeoutMs, 'deadline');
        work(session, used).then(resolve, (error: unknown) => {
          const fault = used.transaction ? used.transaction.failed : error;
          if (isSessionLost(fault) || session.lost !== undefined || neverSent(used)) giveUp('lost', fault);
          else reject(isRefused(fault) ? new DatabaseUnavailable('refused', answered, fault) : error);
        });
      });
    } finally {
      clearTimeout(timer);
      session.onLost = undefined;
      inUse.delete(piece);
      giveBack(session);
      if (inUse.size === 0) allBack?.();
    }
  };

  const close = async (graceMs: number): Promise<void> => {
    line.refuse(unavailable('closed'));
    if (inUse.size > 0) {
      const late = setTimeout(() => {
        for (const piece of inUse) piece.cut();
      }, graceMs);
      await new Promise<void>((resolve) => {
        allBack = resolve;
      });
      clearTimeout(late);
    }
    for (const session of idle.splice(0)) {
      session.onLost = undefined;
      farewells.push(session.end());
    }
    await Promise.all(farewells);
  };

  return {
    keySchema,
    query: (build) =>
      use(async (session, used) => {
        const statement = build(session.sql);
        used.statement = statement as unknown as Sent;
        return await statement;
      }),
    transaction: (work) =>
      use((session, used) => {
        used.transaction = { failed: undefined, over: false, begin: undefined, commitSent: false };
        return runTransaction(session, used.transaction, work);
      }),
    stats: () => ({ max, open, inUse: inUse.size, waiting: line.length, ...line.stats(), ...counters }),
    close(graceMs) {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

/** Work that holds a session. */
type Piece = { cut(): void };

/** What a piece of work has made so far: one autocommitted statement or a transaction. */
type Used = { statement: Sent | undefined; transaction: TransactionState | undefined };

const answered = { sent: true, commitUnknown: false };

/** The server process that was sent something; undefined while nothing has left. */
function sentBy(used: Used): Backend | undefined {
  return (used.transaction?.begin ?? used.statement)?.state ?? undefined;
}

/** A statement was made and rejected without leaving: no connection could be opened. */
function neverSent(used: Used): boolean {
  return (used.transaction?.begin ?? used.statement) !== undefined && sentBy(used) === undefined;
}

function unavailable(reason: UnavailableReason, used?: Used, cause?: unknown): DatabaseUnavailable {
  const sent = used !== undefined && sentBy(used) !== undefined;
  const commitUnknown = sent && (used.transaction ? used.transaction.commitSent : true);
  return new DatabaseUnavailable(reason, { sent, commitUnknown }, cause);
}

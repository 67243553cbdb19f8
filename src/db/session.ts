import type { Socket } from 'node:net';
import postgres from 'postgres';
import { type Address, dial } from './dial.ts';
import { wireTypes } from './wire-types.ts';

/** Idle seconds after which the kernel probes the peer, so that a vanished host is noticed. */
const keepAliveSeconds = 10;
/** Milliseconds a cancel request may take before the session is cut without it. */
const cancelMs = 1_000;

/** How to connect: user, password and database are the URL's, the address is one of its hosts. */
export type Target = {
  readonly url: string;
  readonly address: Address;
  readonly prepare: boolean;
  /** After so long without a word inside a transaction, Postgres ends the session. Milliseconds. */
  readonly silenceMs: number;
};

/** The server process behind a session, as a cancel request names it. */
export type Backend = { readonly pid: number; readonly secret: number };

/**
 * One Postgres session: a postgres.js instance of one connection, bound to one socket for life.
 *
 * postgres.js reconnects by itself, and that is where its faults live: a statement of a lost transaction runs on the next
 * session, a write meets no socket and throws outside any promise, a flush timer of the last socket keeps the next from
 * flushing. A session here never connects twice, so none of those states is reached; a lost one is replaced by a new one.
 */
export type Session = {
  readonly sql: postgres.Sql;
  /** The statement that begins a transaction. */
  readonly begin: string;
  readonly openedAt: number;
  /** Why it can't be used any more. */
  readonly lost: Error | undefined;
  /** Called once when it is lost. */
  onLost: ((cause: Error) => void) | undefined;
  /** Cuts it, and asks the server to cancel what it does for `backend`. */
  cut(backend?: Backend): void;
  /** Says goodbye and closes. */
  end(): Promise<void>;
};

/** Gets what NOTIFY sends to a session that listens. */
export type OnNotify = (channel: string, payload: string) => void;

/** Opens a session lazily: the first statement connects. */
export function openSession({ url, address, prepare, silenceMs }: Target, onNotify?: OnNotify): Session {
  let lost: Error | undefined;
  let destroySocket: (() => void) | undefined;

  const lose = (cause: Error) => {
    if (lost !== undefined) return;
    lost = cause;
    session.onLost?.(cause);
  };

  const connectOnce = async (): Promise<Socket> => {
    if (destroySocket !== undefined || lost !== undefined) throw lost ?? new Error('a session connects once');
    const call = dial(address);
    destroySocket = call.destroy;
    const socket = await call.ready.catch((error: Error) => {
      lose(error);
      throw error;
    });
    destroySocket = () => socket.destroy();
    // Before the driver's own listeners: whoever asks after this moment is told that the session is lost.
    socket.on('error', lose);
    socket.on('end', () => lose(new Error('Postgres ended the connection')));
    socket.on('close', () => lose(new Error('the connection to Postgres is closed')));
    return socket;
  };

  const sql = postgres(url, {
    max: 1,
    prepare,
    // Address, encryption, time limits and reconnecting are ours.
    socket: connectOnce,
    ssl: false,
    host: address.host,
    port: address.port,
    idle_timeout: 0,
    max_lifetime: 0,
    connect_timeout: 0,
    backoff: () => 0,
    keep_alive: keepAliveSeconds,
    // A query at every connect for array types that nothing here uses.
    fetch_types: false,
    types: wireTypes,
    connection: { application_name: 'retry-safe' },
    onnotice: () => {},
    onnotify: onNotify,
    onclose: () => lose(new Error('the driver closed the connection')),
  } as unknown as postgres.Options<Record<string, postgres.PostgresType>>) as unknown as postgres.Sql;

  const session: Session = {
    sql,
    // The last resort against an owner that stops or vanishes with its locks held. Not a parameter of the connection:
    // PgBouncer refuses those, and another client may have the session next.
    begin: `begin; set local idle_in_transaction_session_timeout = ${silenceMs}`,
    openedAt: performance.now(),
    get lost() {
      return lost;
    },
    onLost: undefined,
    cut(backend) {
      lose(new Error('the session was cut'));
      const destroy = () => {
        destroySocket?.();
        // Rejects whatever the driver still holds.
        void sql.end({ timeout: 0 });
      };
      if (backend === undefined) destroy();
      else cancel(address, backend).finally(destroy);
    },
    async end() {
      lost ??= new Error('the session has ended');
      await sql.end({ timeout: 1 });
      destroySocket?.();
    },
  };
  return session;
}

/** Sends a cancel request (PostgreSQL manual, "Canceling Requests in Progress"); resolves when it was taken or failed. */
async function cancel(address: Address, backend: Backend): Promise<void> {
  const message = Buffer.alloc(16);
  message.writeUInt32BE(16, 0);
  message.writeUInt32BE(80877102, 4);
  message.writeUInt32BE(backend.pid, 8);
  message.writeUInt32BE(backend.secret, 12);
  const call = dial(address);
  const late = setTimeout(call.destroy, cancelMs);
  try {
    const socket = await call.ready;
    socket.on('error', () => {});
    // The other side hangs up when it has done so; PgBouncer drops the request of a client that hangs up first.
    await new Promise((resolve) => socket.once('close', resolve).resume().write(message));
  } catch {
    // Without it the server notices at the end of the statement.
  } finally {
    clearTimeout(late);
  }
}

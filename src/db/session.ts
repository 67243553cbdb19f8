import { connect, type Socket } from 'node:net';
import postgres from 'postgres';
import { wireTypes } from './wire-types.ts';

/** Idle seconds after which the kernel probes the peer, so that a vanished host is noticed. */
const keepAliveSeconds = 10;
/** Milliseconds a cancel request may take before the session is cut without it. */
const cancelMs = 1_000;

/** Where to connect: one host of the URL. */
export type Target = {
  readonly url: string;
  readonly host: string;
  readonly port: number;
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
export function openSession(target: Target, onNotify?: OnNotify): Session {
  let socket: Socket | undefined;
  let lost: Error | undefined;

  const lose = (cause: Error) => {
    if (lost !== undefined) return;
    lost = cause;
    session.onLost?.(cause);
  };

  const dial = async (): Promise<Socket> => {
    if (socket !== undefined || lost !== undefined) throw lost ?? new Error('a session connects once');
    const fresh = dialTarget(target, sql.options.path);
    socket = fresh;
    // Before the driver's own listeners: whoever asks after this moment is told that the session is lost.
    fresh.on('error', lose);
    fresh.on('end', () => lose(new Error('Postgres ended the connection')));
    fresh.on('close', () => lose(new Error('the connection to Postgres is closed')));
    await opened(fresh);
    return fresh;
  };

  const sql = postgres(target.url, {
    host: target.host,
    port: target.port,
    max: 1,
    prepare: target.prepare,
    // Time limits and reconnecting are the pool's.
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
    socket: dial,
  } as unknown as postgres.Options<Record<string, postgres.PostgresType>>) as unknown as postgres.Sql;

  const session: Session = {
    sql,
    // The last resort against an owner that stops or vanishes with its locks held. Not a parameter of the connection:
    // PgBouncer refuses those, and another client may have the session next.
    begin: `begin; set local idle_in_transaction_session_timeout = ${target.silenceMs}`,
    openedAt: performance.now(),
    get lost() {
      return lost;
    },
    onLost: undefined,
    cut(backend) {
      lose(new Error('the session was cut'));
      const destroy = () => {
        socket?.destroy();
        // Rejects whatever the driver still holds.
        void sql.end({ timeout: 0 });
      };
      if (backend === undefined) destroy();
      else cancel(dialTarget(target, sql.options.path), backend, destroy);
    },
    async end() {
      lost ??= new Error('the session has ended');
      await sql.end({ timeout: 1 });
      socket?.destroy();
    },
  };
  return session;
}

function dialTarget(target: Target, path: string | false | undefined): Socket {
  const socket = path ? connect(path) : connect(target.port, target.host);
  // Read by the driver for TLS' server name.
  Object.assign(socket, { host: target.host, port: target.port });
  return socket.setNoDelay(true);
}

function opened(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error?: Error | boolean) =>
      reject(error instanceof Error ? error : new Error('the connection to Postgres closed while it was opened'));
    socket.once('error', failed);
    socket.once('close', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      socket.off('close', failed);
      resolve();
    });
  });
}

/** Sends a cancel request (PostgreSQL manual, "Canceling Requests in Progress") and calls `done` when it was taken or failed. */
function cancel(socket: Socket, backend: Backend, done: () => void): void {
  const message = Buffer.alloc(16);
  message.writeUInt32BE(16, 0);
  message.writeUInt32BE(80877102, 4);
  message.writeUInt32BE(backend.pid, 8);
  message.writeUInt32BE(backend.secret, 12);
  socket.setTimeout(cancelMs, () => socket.destroy());
  socket.on('error', () => {});
  socket.on('close', done);
  // The other side hangs up when it has done so; PgBouncer drops the request of a client that hangs up first.
  socket.resume();
  socket.write(message);
}

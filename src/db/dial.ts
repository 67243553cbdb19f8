import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import postgres from 'postgres';

/** One host of a connection URL. */
export type Address = {
  readonly host: string;
  readonly port: number;
  /** A Unix socket file, which goes before host and port. */
  readonly path: string | undefined;
  /** The URL's `sslmode` as the driver reads it: false, a mode, or options of node:tls. */
  readonly tls: boolean | string | object | undefined;
};

/** A connection that is being opened. */
export type Call = {
  /** The open socket, encrypted where that was asked for. */
  readonly ready: Promise<Socket>;
  /** Breaks it off, whatever state it is in. */
  destroy(): void;
};

/** PostgreSQL manual, "SSL Session Encryption". */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/** In these modes the connection is encrypted, but nobody looks whose certificate it is. */
const unverified: readonly unknown[] = ['require', 'allow', 'prefer'];

/** The addresses in a connection URL (`host1:5432,host2:5433` are tried in turn); the driver's parser says what it means. */
export function addressesOf(url: string): Address[] {
  const { host, port, path, ssl } = postgres(url, { max: 1 }).options;
  return host.map((name, i) => ({ host: name, port: port[i] ?? 5432, path: path || undefined, tls: ssl }));
}

/** Calls Postgres. */
export function dial(address: Address): Call {
  const raw = (address.path ? connect(address.path) : connect(address.port, address.host)).setNoDelay(true);
  const open = async () => {
    await happens(raw, 'connect');
    return address.tls ? await encrypt(raw, address) : raw;
  };
  return { ready: open(), destroy: () => raw.destroy() };
}

async function encrypt(raw: Socket, address: Address): Promise<Socket> {
  raw.write(tlsRequest);
  const answer = String(await happens(raw, 'data'));
  if (answer === 'N' && (address.tls === 'prefer' || address.tls === 'allow')) return raw;
  // More than one letter was slipped in by somebody who is not the server (CVE-2021-23222).
  if (answer !== 'S') throw new Error('Postgres does not take encrypted connections');
  const encrypted = connectTls({
    socket: raw,
    ...(isIP(address.host) ? {} : { servername: address.host }),
    ...(unverified.includes(address.tls) ? { rejectUnauthorized: false } : {}),
    ...(typeof address.tls === 'object' ? address.tls : {}),
  });
  await happens(encrypted, 'secureConnect');
  return encrypted;
}

/** The first argument of the event, or the failure that came instead. */
function happens(socket: Socket, event: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const done = (value: unknown) => {
      socket.off('error', failed).off('close', closed);
      resolve(value);
    };
    const failed = (error: Error) => {
      socket.off(event, done).off('close', closed);
      // What else goes wrong with a broken connection is of no interest.
      socket.on('error', () => {});
      reject(error);
    };
    const closed = () => failed(new Error('the connection to Postgres closed while it was opened'));
    socket.once(event, done).once('error', failed).once('close', closed);
  });
}

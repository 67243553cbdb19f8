import type postgres from 'postgres';
import type { ErrorCode } from '../../src/protocol/errors.ts';
import { testToken } from '../helpers/server.ts';
import { until } from '../helpers/sql.ts';
import type { Answer } from './judge.ts';
import { type Door, orderWith, type Sent } from './requests.ts';

/** What the server under test lets the test do. */
export type World = Door & {
  readonly sql: postgres.Sql;
  /** Sends the first lines of a head and waits. */
  stall(text: string): Promise<Answer>;
  /** While the work runs, whatever asks the database fails like this. */
  whileBroken<T>(fault: 'internal' | 'unavailable', work: () => Promise<T>): Promise<T>;
  /** While the work runs, no keyed write can complete. */
  whileHeld<T>(work: () => Promise<T>): Promise<T>;
  /** Deletes the texts of jobs that are past their retention. */
  deleteTexts(): Promise<unknown>;
};

/** An operation with the means to ask for it: `ask` makes a request that would succeed, of a tenant that may spend or of another. */
export type Operation = {
  readonly method: string;
  readonly path: string;
  ask(tenant?: string): Promise<Sent>;
};

/** An answer to one operation, with the operation. */
export type Told = { readonly operation: Operation; readonly answer: Answer };

/** Makes the code of the answer of each operation. */
type Provocation = (world: World, operations: readonly Operation[]) => Promise<readonly Told[]>;

type Change = (request: Sent, operation: Operation, world: World) => Sent | Promise<Sent>;

/** Each operation is asked with a request that is changed. */
const changed =
  (change: Change): Provocation =>
  (world, operations) =>
    Promise.all(
      operations.map(async (operation) => {
        const request = await change(await operation.ask(), operation, world);
        return { operation, answer: await world.send(request) };
      }),
    );

/** The requests are made, then sent while something is wrong with the server. */
const during =
  (around: (world: World, work: () => Promise<Told[]>) => Promise<Told[]>): Provocation =>
  async (world, operations) => {
    const asked = await Promise.all(
      operations.map(async (operation) => ({ operation, request: await operation.ask() })),
    );
    return await around(world, () =>
      Promise.all(asked.map(async ({ operation, request }) => ({ operation, answer: await world.send(request) }))),
    );
  };

const withHeaders = (headers: Sent['headers']): Provocation =>
  changed((request) => ({ ...request, headers: { ...request.headers, ...headers } }));
const withBody = (body: string, headers: Sent['headers'] = {}): Provocation =>
  changed((request) => ({ ...request, body, headers: { ...request.headers, ...headers } }));
const withQuery = (query: string): Provocation =>
  changed((request) => ({ ...request, path: `${request.path.split('?')[0]}?${query}` }));
const instructed = (instruction: string): Provocation => withBody(JSON.stringify({ instruction }));

let tenants = 0;
/** A tenant that nobody has given anything. */
function stranger(): string {
  tenants += 1;
  return `stranger-${tenants}`;
}

/** Largest body that the server under test takes, in bytes. */
export const maxBodyBytes = 20_000;

/** How each code is provoked. A new code without its provocation does not compile. */
export const provocations: { readonly [Code in ErrorCode]: Provocation } = {
  bad_request: changed((request) => ({ ...request, hasHost: false })),
  idempotency_key_required: withHeaders({ 'idempotency-key': undefined }),
  idempotency_key_invalid: withHeaders({ 'idempotency-key': 'a b' }),
  precondition_invalid: withHeaders({ 'if-match': 'unquoted' }),
  invalid_json: withBody('{'),
  invalid_query: withQuery('after=1&after=2'),
  invalid_cursor: withQuery('after=nonsense'),
  unexpected_body: withBody('{}', { 'content-type': 'application/json' }),
  unauthenticated: withHeaders({ authorization: undefined }),
  insufficient_credits: (world, operations) =>
    Promise.all(
      operations.map(async (operation) => ({
        operation,
        answer: await world.send(await operation.ask(stranger())),
      })),
    ),
  forbidden: changed(async (request) => {
    const authorization = `Bearer ${await testToken({ tenant: request.tenant })}`;
    return { ...request, headers: { ...request.headers, authorization } };
  }),
  not_found: changed((request, { path }) => ({ ...request, path: path.replace(/\{[a-z_]+\}/, 'missing') })),
  // Of no operation: an address with another method is none.
  method_not_allowed: async () => [],
  request_timeout: async (world, operations) =>
    Promise.all(
      operations.map(async (operation) => {
        const { method, path } = await operation.ask();
        return { operation, answer: await world.stall(`${method} ${path} HTTP/1.1\r\nHost: test\r\nX-Slow`) };
      }),
    ),
  idempotency_key_reused: changed(async (request, _operation, world) => {
    await orderWith(world, request.tenant, request.headers['idempotency-key'] ?? '');
    // An order would be the same order again.
    return request.path === '/v1/orders' ? { ...request, path: '/v1/orders?other' } : request;
  }),
  request_in_progress: async (world, operations) => {
    const asked = await Promise.all(
      operations.map(async (operation) => ({ operation, request: await operation.ask() })),
    );
    const first: Promise<Answer>[] = [];
    const told = await world.whileHeld(() =>
      Promise.all(
        asked.map(async ({ operation, request }) => {
          first.push(world.send(request));
          const path = `/v1/idempotency-keys/${request.headers['idempotency-key']}`;
          const { authorization } = request.headers;
          const look = { ...request, method: 'GET', path, body: undefined, headers: { authorization } };
          await until(async () => (await world.send(look)).status === 200);
          // A copy that would rather wait is told how long it may.
          const copy = { ...request, headers: { ...request.headers, prefer: 'wait=1' } };
          const [answer, parked] = await Promise.all([world.send(request), world.send(copy)]);
          return [
            { operation, answer },
            { operation, answer: parked },
          ];
        }),
      ),
    );
    const firsts = await Promise.all(first);
    return [...told.flat(), ...firsts.map((answer, i) => ({ operation: asked[i]?.operation as Operation, answer }))];
  },
  idempotency_key_expired: changed(async (request, _operation, world) => {
    await world.send(request);
    await world.sql`update idem set expires_at = now() - interval '1 second'
      where tenant = ${request.tenant} and key = ${request.headers['idempotency-key'] ?? ''}`;
    return request;
  }),
  events_deleted: changed(async (request, _operation, world) => {
    // To the end of the job; a HEAD would not wait for it.
    await world.send({ ...request, method: 'GET' });
    await world.sql`update jobs set ended_at = ended_at - interval '25 hours' where tenant = ${request.tenant}`;
    await world.deleteTexts();
    return request;
  }),
  precondition_failed: withHeaders({ 'if-match': '"of-another-version"', 'if-none-match': undefined }),
  body_too_large: withBody('x'.repeat(maxBodyBytes + 1)),
  unsupported_media_type: withHeaders({ 'content-type': 'text/plain' }),
  expectation_failed: withHeaders({ expect: 'a-miracle' }),
  invalid_body: withBody('{"unknown":1}'),
  precondition_required: withHeaders({ 'if-match': undefined, 'if-none-match': undefined }),
  rate_limited: (world, operations) =>
    Promise.all(
      operations.map(async (operation) => {
        const tenant = stranger();
        const request = await operation.ask(tenant);
        // Refilled later than now: however slow the machine is, nothing has come in since.
        await world.sql`insert into buckets values (${tenant}, 0, now() + interval '1 minute')`;
        return { operation, answer: await world.send(request) };
      }),
    ),
  headers_too_large: withHeaders({ 'x-large': 'x'.repeat(20_000) }),
  internal: during((world, work) => world.whileBroken('internal', work)),
  upstream_failed: instructed('[[fail:500]]'),
  unavailable: during((world, work) => world.whileBroken('unavailable', work)),
  upstream_busy: instructed('[[fail:429:7]]'),
  upstream_timeout: instructed('[[stall]]'),
};

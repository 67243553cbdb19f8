import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../src/db/pool.ts';
import { DatabaseUnavailable } from '../../src/db/unavailable.ts';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { contract } from '../../src/protocol/contract.ts';
import { errorCodes } from '../../src/protocol/errors.ts';
import type { Procedure } from '../../src/protocol/procedure.ts';
import { deleteTextsOnce } from '../../src/resources/jobs/retention.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { connectRaw } from '../helpers/raw-socket.ts';
import { startServer } from '../helpers/server.ts';
import { holdCommits, testSql, until } from '../helpers/sql.ts';
import { type Answer, createJudge, type Judge } from './judge.ts';
import { maxBodyBytes, type Operation, provocations, type Told, type World } from './provocations.ts';
import { freshKey, giveCredits, openDoor, type Sent, successes } from './requests.ts';

const dayMs = 86_400_000;

test('every operation is called, every code provoked, and every answer is as the document says, which lists nothing else', async (t) => {
  let fault: 'internal' | 'unavailable' | undefined;
  const faultError = () =>
    fault === 'internal'
      ? new Error('a fault that the test asked for')
      : new DatabaseUnavailable('connect', { sent: false, commitUnknown: false });
  const model = createSimulatedProvider({ latencyMs: 20, tokens: 4 });
  const server = await startServer(t, {
    provider: model,
    env: {
      MAX_BODY_BYTES: String(maxBodyBytes),
      REQUEST_TIMEOUT_MS: '2000',
      LLM_TIMEOUT_MS: '3000',
      DB_POOL_MAX: '20',
      RATE_LIMIT_RPM: '60',
    },
    openDatabase(options) {
      const db = openDatabase(options);
      return {
        ...db,
        query: (build) => (fault === undefined ? db.query(build) : Promise.reject(faultError())),
        transaction: (work) => (fault === undefined ? db.transaction(work) : Promise.reject(faultError())),
      };
    },
  });
  const door = openDoor(server.url);
  atEnd(t, () => door.close());
  const world: World = {
    ...door,
    sql: testSql(t, server.databaseUrl),
    async stall(text) {
      const connection = await connectRaw(t, server.url);
      connection.send(text);
      return await connection.answer(text.startsWith('HEAD'));
    },
    async whileBroken(kind, work) {
      fault = kind;
      try {
        return await work();
      } finally {
        fault = undefined;
      }
    },
    async whileHeld(work) {
      const held = await holdCommits(t, server.databaseUrl);
      try {
        return await work();
      } finally {
        await held.release();
      }
    },
    deleteTexts: () => deleteTextsOnce(server.db, dayMs),
  };

  const served = await server.call('GET /openapi.json', { token: null });
  const judge = createJudge(served.json);
  const met = new Set<string>();
  const wrong: string[] = [];
  const hear = (method: string, path: string, answer: Answer): void => {
    const code =
      answer.headers['content-type'] === 'application/problem+json' && method !== 'HEAD' ? codeOf(answer) : '';
    const name = `${method} ${path} ${answer.status}${code && ` ${code}`}`;
    met.add(name);
    for (const violation of judge.judge(method, path, answer)) wrong.push(`${name}: ${violation}`);
  };

  const operations = await operationsOf(world, judge);
  const asked = (code: string) => operations.filter(({ codes }) => codes.has(code));
  const hearAll = (told: readonly Told[]) => {
    for (const { operation, answer } of told) hear(operation.method, operation.path, answer);
  };
  // These wait for seconds; the others are asked meanwhile.
  const late = provocations.request_timeout(world, asked('request_timeout'));
  for (const { method, path, good } of operations) {
    for (const request of await good()) {
      hear(method, path, await world.send(request));
      // A write's copy gets the stored answer, which is listed too.
      if (request.headers['idempotency-key'] !== undefined) hear(method, path, await world.send(request));
    }
  }
  for (const [code, provoke] of Object.entries(provocations)) {
    if (code !== 'request_timeout') hearAll(await provoke(world, asked(code)));
  }
  hearAll(await late);
  for (const answer of await lostRewrites(world, () => until(() => model.stats().active === 1))) {
    assert.equal(typeof JSON.parse(answer.text).draft, 'string');
    hear('POST', contract.rewriteDoc.path, answer);
  }
  for (const [line, status, code] of [
    ['GET /v1/nothing', 404, 'not_found'],
    ['DELETE /v1/orders', 405, 'method_not_allowed'],
  ] as const) {
    const stray = await server.call(line);
    assert.deepEqual([stray.status, stray.json.code], [status, code]);
    assert.deepEqual(judge.violations('/components/schemas/Problem', stray.json), []);
    if (status === 405) assert.ok(stray.headers.get('allow'));
    met.add(`stray ${code}`);
  }

  assert.deepEqual(wrong, []);
  const listed = operations.flatMap(({ method, path }) =>
    judge.listed(method, path).map((what) => `${method} ${path} ${what}`),
  );
  assert.deepEqual(
    listed.filter((name) => !met.has(name)),
    [],
    'all that the document lists is met',
  );
  const codes = new Set([...met].map((name) => name.split(' ').at(-1)));
  assert.deepEqual(
    Object.keys(errorCodes).filter((code) => !codes.has(code)),
    [],
    'every code is met',
  );
});

const codeOf = (answer: Answer): string => JSON.parse(answer.text).code;

type Asked = Operation & {
  /** The codes that the document lists for it; a HEAD has those of its GET, which has a body to read them from. */
  readonly codes: ReadonlySet<string>;
  /** Requests that get each success status. */
  good(): Promise<Sent[]>;
};

/** The operations of the contract, and a HEAD for each GET; each has a tenant of its own that may spend. */
async function operationsOf(world: World, judge: Judge): Promise<Asked[]> {
  const operations: Asked[] = [];
  for (const [name, procedure] of Object.entries<Procedure>(contract)) {
    const makers = Object.values(successes[name as keyof typeof successes]);
    for (const method of procedure.method === 'GET' ? ['GET', 'HEAD'] : [procedure.method]) {
      const tenant = `${method}-${name}`;
      await giveCredits(world, tenant);
      const listed = judge.listed(procedure.method, procedure.path);
      const made = async (maker: (typeof makers)[number], spender = tenant) => ({
        ...(await maker(world, spender)),
        method,
      });
      operations.push({
        method,
        path: procedure.path,
        codes: new Set(listed.map((what) => what.split(' ')[1] ?? '')),
        ask: (spender) => made(makers[0] as (typeof makers)[number], spender),
        async good() {
          const requests = await Promise.all(makers.map((maker) => made(maker)));
          const [first] = requests as [Sent];
          if (!listed.includes('304')) return requests;
          const { etag } = (await world.send(first)).headers;
          return [...requests, { ...first, headers: { ...first.headers, 'if-none-match': etag } }];
        },
      });
    }
  }
  return operations;
}

/** Rewrites that lose to a newer version, and to a deletion: each refusal as it was made, and again from its key. */
async function lostRewrites(world: World, modelWrites: () => Promise<void>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const faster of [successes.putDoc[200], successes.deleteDoc[204]]) {
    const rival = await faster(world, 'POST-rewriteDoc');
    const rewrite = {
      ...rival,
      method: 'POST',
      path: `${rival.path}/rewrite`,
      body: JSON.stringify({ instruction: '[[slow:400]]' }),
      headers: { ...rival.headers, 'content-type': 'application/json', 'idempotency-key': freshKey() },
    };
    const lost = world.send(rewrite);
    await modelWrites();
    await world.send(rival);
    answers.push(await lost, await world.send(rewrite));
  }
  return answers;
}

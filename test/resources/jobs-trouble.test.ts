import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startLlmStub } from '../../scripts/llm-stub/server.ts';
import { retryDelayMs } from '../../src/resources/jobs/retry-delay.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { createJob, ended, ledgerOf, openStream, textOf } from '../helpers/jobs.ts';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

/** A server that calls the stub over HTTP; the stub counts: the P of a case. */
async function start(t: Parameters<typeof startServer>[0], env: Record<string, string> = {}) {
  const stub = await startLlmStub({ latencyMs: 40, tokens: 20 });
  atEnd(t, stub.close);
  const server = await startServer(t, {
    seedCredits: true,
    env: { LLM_BASE_URL: stub.url, LLM_TIMEOUT_MS: '600', JOB_MAX_ATTEMPTS: '2', ...env },
  });
  return { ...server, stub };
}

type Trouble = {
  readonly what: string;
  readonly prompt: string;
  readonly code: string;
  readonly unknown: number;
  /** Tokens that came before the trouble, in each of both attempts. */
  readonly tokens: number;
};

const troubles: readonly Trouble[] = [
  { what: 'is busy', prompt: '[[fail:429]]', code: 'upstream_busy', unknown: 0, tokens: 0 },
  { what: 'fails', prompt: '[[fail:500]]', code: 'upstream_failed', unknown: 0, tokens: 0 },
  { what: 'hangs', prompt: '[[stall]]', code: 'upstream_timeout', unknown: 2, tokens: 0 },
  { what: 'falls silent', prompt: '[[stall-after:5]]', code: 'upstream_timeout', unknown: 2, tokens: 5 },
  { what: 'closes half-way', prompt: '[[cut:5]]', code: 'upstream_failed', unknown: 2, tokens: 5 },
  { what: 'fails half-way', prompt: '[[error:5]]', code: 'upstream_failed', unknown: 0, tokens: 5 },
];

for (const { what, prompt, code, unknown, tokens } of troubles) {
  test(`39: a provider that ${what} is asked max_attempts times, then the job is dead and its hold released`, async (t) => {
    const server = await start(t);
    const id = await createJob(server, 'k', prompt);
    const events = await (await openStream(server, id)).rest();
    const { json: job } = await server.call(`GET /v1/jobs/${id}`);
    assert.deepEqual([job.status, job.attempts, job.error.code, job.result], ['dead', 2, code, null]);
    assert.equal(typeof job.error.message, 'string');
    assert.equal(server.stub.stats().calls, 2, 'P equals the attempts recorded');
    const estimate = Math.ceil(prompt.length / 4);
    assert.deepEqual(job.usage, {
      prompt_tokens: tokens === 0 ? 0 : 2 * estimate,
      completion_tokens: 2 * tokens,
      unknown_attempts: unknown,
    });
    assert.deepEqual(events.at(-1)?.data, { seq: events.length, code });
    assert.equal(events.filter((event) => event.event === 'reset').length, 1);
    const { held_micros, of } = await ledgerOf(server);
    assert.equal(held_micros, 0);
    const release = of(id).find((item) => item.kind === 'release');
    assert.equal(release?.unknown_attempts ?? 0, unknown, 'the ledger says how many outcomes are unknown');
    const charges = of(id).filter((item) => item.kind === 'charge');
    assert.deepEqual(
      charges.map((item) => -item.amount_micros),
      tokens === 0 ? [] : [job.cost_micros],
    );
  });
}

test('39: a provider that refuses for good is asked once, and the job has failed', async (t) => {
  const server = await start(t);
  const job = await ended(server, await createJob(server, 'k', '[[fail:400]]'));
  assert.deepEqual([job.status, job.attempts, job.error.code, job.cost_micros], ['failed', 1, 'upstream_failed', 0]);
  assert.equal(server.stub.stats().calls, 1);
  assert.equal((await ledgerOf(server)).held_micros, 0);
});

test('39: a provider that cannot be reached was never asked: no attempt, and yet an end', async (t) => {
  const server = await start(t, { LLM_BASE_URL: 'http://127.0.0.1:1/v1' });
  const id = await createJob(server, 'k', 'x');
  const events = await (await openStream(server, id)).rest();
  const { json: job } = await server.call(`GET /v1/jobs/${id}`);
  assert.deepEqual([job.status, job.attempts, job.usage.unknown_attempts], ['dead', 0, 0]);
  assert.ok(!events.some((event) => event.event === 'reset'), 'there was no attempt to forget');
});

test('39: after trouble the next attempt counts, its text replaces what was said before, and all of it is paid', async (t) => {
  const server = await start(t, { JOB_MAX_ATTEMPTS: '5' });
  server.stub.script(['cut:7', 'fail:429:1', 'ok']);
  const startedMs = performance.now();
  const id = await createJob(server, 'k', 'four');
  const events = await (await openStream(server, id)).rest();
  const { json: job } = await server.call(`GET /v1/jobs/${id}`);
  assert.deepEqual([job.status, job.attempts], ['succeeded', 3]);
  assert.deepEqual(job.usage, { prompt_tokens: 2, completion_tokens: 27, unknown_attempts: 1 });
  assert.equal(job.cost_micros, 290);
  assert.equal(textOf(events), job.result);
  assert.deepEqual(
    events.filter(({ event }) => event === 'reset').map(({ data }) => data.attempt),
    [2, 3],
  );
  assert.ok(performance.now() - startedMs >= 1_000, "the provider's Retry-After was waited for");
  const keys = Object.keys(server.stub.stats().by_key);
  assert.equal(keys.length, 1, 'every try carries the same derived key');
  const other = await createJob(server, 'k2', 'four');
  await ended(server, other);
  assert.equal(Object.keys(server.stub.stats().by_key).length, 2);
});

test('a provider that claims to have used more than was held is paid what was held', async (t) => {
  const server = await start(t, { WORKERS: '0' });
  const id = await createJob(server, 'k', '[[tokens:400]]', { maxTokens: 400 });
  await testSql(t, server.databaseUrl)`update holds set amount_micros = 50`;
  await testSql(t, server.databaseUrl)`update jobs set hold_micros = 50`;
  await startServer(t, { databaseUrl: server.databaseUrl, env: { LLM_BASE_URL: server.stub.url } });
  const job = await ended(server, id);
  assert.deepEqual([job.status, job.cost_micros], ['succeeded', 50]);
});

test('the pause before a retry doubles up to a minute, at least half of it, and never undercuts Retry-After', () => {
  const cases = [
    [1, 0, undefined, 250],
    [1, 1, undefined, 500],
    [4, 1, undefined, 4_000],
    [30, 1, undefined, 60_000],
    [30, 0, undefined, 30_000],
    [1, 0, 5_000, 5_000],
    [1, 1, 5_000, 5_500],
    [8, 1, 1_000, 60_000],
  ] as const;
  for (const [tries, random, retryAfterMs, expected] of cases) {
    assert.equal(retryDelayMs(tries, random, retryAfterMs), expected, JSON.stringify([tries, random, retryAfterMs]));
  }
});

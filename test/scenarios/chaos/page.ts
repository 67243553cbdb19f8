import { type Figures, faultKinds } from './report.ts';

/** Where a run's figures come from. */
export type Origin = {
  /** `+` behind it: with changes that are not committed. */
  readonly commit: string;
  readonly date: string;
  readonly node: string;
  readonly postgres: string;
  readonly machine: string;
};

/** What is kept of a long run, beside the page that it makes. */
export type KeptRun = { readonly origin: Origin; readonly figures: Figures };

/** What is promised, and by which tests one sees that it holds; paths are relative to `test/`. */
const promises: readonly (readonly [promise: string, tests: readonly string[]])[] = [
  [
    'One key does its work at most once, and every later answer is the first one, byte for byte: through `kill -9`, restarts of Postgres, several processes, owners that stand still and come back.',
    [
      'scenarios/chaos.test.ts',
      'scenarios/chaos-windows.test.ts',
      'scenarios/key-crash.test.ts',
      'scenarios/key-copies.test.ts',
      'scenarios/key-replay.test.ts',
    ],
  ],
  [
    'Work and stored answer commit together or not at all, and only while the claim is still the owner’s.',
    ['scenarios/chaos.test.ts', 'scenarios/key-stopped-owner.test.ts', 'idempotency/claims.test.ts'],
  ],
  [
    'A duplicate is told at once; it never waits for the first.',
    ['scenarios/key-state.test.ts', 'idempotency/locks.test.ts'],
  ],
  [
    'An edit that was answered with success is in every later version, until somebody who has seen it writes over it.',
    ['scenarios/chaos.test.ts', 'scenarios/conditional-race.test.ts'],
  ],
  [
    'A model call is charged once: one hold, one release, at most one charge for each job and each rewrite, and no balance below zero.',
    ['scenarios/chaos.test.ts', 'resources/jobs.test.ts', 'resources/rewrite.test.ts', 'credits/books.test.ts'],
  ],
  [
    'Nothing stays stuck: each claim, job and hold reaches an end without an operator.',
    [
      'scenarios/chaos.test.ts',
      'scenarios/key-ends.test.ts',
      'scenarios/jobs-crash.test.ts',
      'idempotency/claims.test.ts',
    ],
  ],
  [
    'Whatever breaks between server and database is a 503 with `Retry-After`, never a 500, and every answer has its bound in time.',
    ['scenarios/chaos.test.ts', 'db/faults.test.ts'],
  ],
  [
    'A proxy that sends POSTs again by itself does no harm; tags, 304 and streams pass through compression and buffering.',
    [
      'scenarios/nginx-resend.test.ts',
      'scenarios/haproxy-resend.test.ts',
      'scenarios/nginx-gzip.test.ts',
      'scenarios/nginx-stream.test.ts',
    ],
  ],
  [
    'What was acknowledged is there after the primary is lost, if a synchronous standby is promoted.',
    ['scenarios/standby.test.ts'],
  ],
  [
    'A deploy, process by process, costs a client that retries no error and nobody a lease.',
    ['scenarios/rolling-deploy.test.ts', 'scenarios/key-shutdown.test.ts'],
  ],
  [
    'It runs on PostgreSQL 15 and newer, and behind PgBouncer in transaction mode with `DB_PREPARE=false`.',
    ['scenarios/postgres-15.test.ts', 'scenarios/pgbouncer.test.ts', 'db/pgbouncer.test.ts'],
  ],
];

/** What is not promised. */
const limits: readonly string[] = [
  'Exactly one *call* of the model. After “sent, no answer” nobody knows whether the provider did it; the attempt is recorded as unknown and not charged. A provider that honours `Idempotency-Key` gets one.',
  'Anything after a key’s retention (`IDEMPOTENCY_TTL_S`): the answer is gone, the key is refused, and later it is free again.',
  'What Postgres itself loses: `fsync` or `synchronous_commit` switched off, an asynchronous standby promoted, a backup restored.',
  'Two successes of one PUT without a key when another edit came between: the second is told 412.',
  'That a client learns of a success it never asks about again. It is stored; asking is the client’s part.',
];

/** The page that says what is promised and how it is tested, with the figures of a run. */
export function reliabilityPage({ origin, figures }: KeptRun): string {
  const intents = Object.values(figures.intents).reduce((sum, n) => sum + n, 0);
  const n = (value: number) => value.toLocaleString('en-US');
  return `# Reliability

Made by \`npm run chaos -- --write docs\` and not edited by hand; the figures are in [reliability.json](reliability.json).

## What is promised

| promise | tests that fail without it |
|---|---|
${promises.map(([promise, tests]) => `| ${promise} | ${tests.map(link).join(', ')} |`).join('\n')}

## What is not

${limits.map((limit) => `- ${limit}`).join('\n')}

## How it is broken

\`npm run chaos\` starts two server processes on one Postgres and clients that want orders, documents, edits, rewrites, jobs and
credits. About a third of what they want is sent two to five times: side by side, one after the other, or because an answer was
lost. Meanwhile everything below happens, again and again. A checker that knows nothing but what the clients wrote down and what
is in the database at the end decides:

- each intent was done once or not at all, and not at all only if nobody was ever told otherwise;
- all success answers of an intent are the same bytes, and those are what the database has stored;
- no edit that was answered is missing from its document, and each version has one author and one text;
- the books agree, everything is paid once, no balance is below zero;
- no key, job or hold is left behind, and whoever asks again when all is quiet gets an end;
- no 5xx but 503, no refusal that an honest copy should not see, no answer beyond its bound, no process that dies by itself.

The checker is tested, too: each of these is planted in a run, and it must find it (\`test/scenarios/chaos-checker.test.ts\`).
With the fencing token taken out of the statement that stores an answer, the same bench finds work that was done twice
(\`test/scenarios/chaos-fence.test.ts\`). Narrow windows are hit on purpose by a server of the tests that kills or stops itself in them
(\`test/scenarios/chaos-windows.test.ts\` has each by itself); the product has no switch for that.

What the bench has found is fixed, and each has a small test of its own in \`test/regressions/\`.

## The last long run

| | |
|---|---:|
| minutes, seed | ${figures.minutes}, ${figures.seed} |
| commit | ${origin.commit} |
| date | ${origin.date} |
| Node, Postgres | ${origin.node}, ${origin.postgres} |
| machine | ${origin.machine} |
| intents | ${n(intents)} |
| requests | ${n(figures.requests)} |
| of them repeated | ${n(figures.repeated)} |
| success answers | ${n(figures.successes)} |
| of them replays | ${n(figures.replays)} |
| keys taken over | ${n(figures.takenOver)} |
| late owners fenced off | ${n(figures.fencedOff)} |
| slowest answer | ${n(figures.slowestMs)} ms |
| **violations** | **${n(figures.violations)}** |

| fault | times | what happens |
|---|---:|---|
${Object.entries(faultKinds)
  .map(([kind, what]) => `| \`${kind}\` | ${n(figures.faults[kind] ?? 0)} | ${what} |`)
  .join('\n')}

| intent | wanted |
|---|---:|
${Object.entries(figures.intents)
  .map(([kind, count]) => `| \`${kind}\` | ${n(count)} |`)
  .join('\n')}
`;
}

function link(path: string): string {
  return `[${path}](../test/${path})`;
}

/** The files that the page names. */
export const namedTests: readonly string[] = promises.flatMap(([, tests]) => tests);

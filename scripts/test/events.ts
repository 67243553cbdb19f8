import { inspect } from 'node:util';

/** One finished test, as a line of JSON from a test file's process to the runner; `noted`: the file did something after a test. */
export type TestEvent = {
  /** The titles from the outermost suite to the test. */
  readonly title: string;
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'noted';
  readonly ms: number;
  /** Why it was skipped, what failed, what was noted. */
  readonly reason: string;
};

type NodeTestEvent = {
  type: string;
  data: {
    name: string;
    nesting: number;
    message?: string;
    skip?: string | boolean;
    todo?: string | boolean;
    details?: { type?: string; duration_ms: number; error?: Error & { cause?: unknown; failureType?: string } };
  };
};

/** A reporter of node:test (`--test-reporter`) that tells the runner about each test. Suites count only when they fail by themselves. */
export default async function* events(source: AsyncIterable<NodeTestEvent>): AsyncGenerator<string> {
  const titles: string[] = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') titles.splice(data.nesting, titles.length, data.name);
    if (type === 'test:diagnostic' && data.message?.includes('after the test ended')) {
      yield line({ title: '', outcome: 'noted', ms: 0, reason: data.message });
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A parent whose subtests failed says nothing new.
    const error = data.details?.error;
    if (error?.failureType === 'subtestsFailed') continue;
    if (data.details?.type === 'suite' && error === undefined) continue;
    const isSkipped = data.skip !== undefined || data.todo !== undefined;
    yield line({
      title: [...titles.slice(0, data.nesting), data.name].join(' › '),
      outcome: isSkipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed',
      ms: data.details?.duration_ms ?? 0,
      reason: isSkipped ? String(data.skip ?? data.todo) : error === undefined ? '' : inspect(error.cause ?? error),
    });
  }
}

const line = (event: TestEvent) => `${JSON.stringify(event)}\n`;

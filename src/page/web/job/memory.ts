import type { Intent } from '../../../client/index.ts';

/** What one tab knows of its job: enough to go on after a reload. */
export type JobMemory = {
  readonly tenant: string;
  /** What was asked, saved before the first try; undefined in a tab that only reads. */
  readonly intent?: Intent<'createJob'>;
  /** Undefined: no answer to the intent was seen yet. */
  readonly jobId?: string;
  /** The last event that was read, and the text up to it. */
  readonly seq: number;
  readonly text: string;
};

const name = 'ask-a-model';

/** Keeps it for this tab, until it is closed. */
export function remember(memory: JobMemory): void {
  sessionStorage.setItem(name, JSON.stringify(memory));
}

/** Nothing is to be gone on with. */
export function forget(): void {
  sessionStorage.removeItem(name);
}

/**
 * What is to be gone on with: this tab's own job, or the one that the address names (`?job=…`), from its start when this tab has
 * read nothing of it yet.
 */
export function recall(tenant: string, search: string): JobMemory | undefined {
  const own = read();
  const named = new URLSearchParams(search).get('job') ?? undefined;
  if (own?.tenant === tenant && (named === undefined || own.jobId === named)) return own;
  return named === undefined ? undefined : { tenant, jobId: named, seq: 0, text: '' };
}

function read(): JobMemory | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

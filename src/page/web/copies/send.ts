import { type AttemptReport, CallError, RefusedError } from '../../../client/index.ts';

/** What a copy does about a first request that still runs. */
export type Patience = 'give_up' | 'try_again' | 'hold';

/** What became of one copy of a request. */
export type Copy = {
  /** Statuses of its tries in order; 0 for a try without an answer. */
  readonly statuses: readonly number[];
  readonly replayed: boolean;
  /** What was made: an order's id, a document's version. Undefined: the copy ended without. */
  readonly made: string | undefined;
  /** The code and the other members of the error that ended it. */
  readonly problem?: Readonly<Record<string, unknown>>;
};

/** One run of the intent: its answer, and whether that is a stored one. */
export type Run = (
  onAttempt: (report: AttemptReport) => void,
  signal: AbortSignal,
) => Promise<{ readonly replayed: boolean; readonly made: string }>;

/** Sends one copy. `onTry` is told after each try what there is to show so far. */
export async function sendCopy(run: Run, patience: Patience, onTry: (copy: Copy) => void): Promise<Copy> {
  const statuses: number[] = [];
  const enough = new AbortController();
  const soFar: Copy = { statuses, replayed: false, made: undefined };
  let lastCode: string | undefined;
  const onAttempt = ({ status, code }: AttemptReport) => {
    statuses.push(status ?? 0);
    lastCode = code;
    onTry({ ...soFar, statuses: [...statuses] });
    if (patience === 'give_up' && code === 'request_in_progress') enough.abort();
  };
  try {
    return { ...(await run(onAttempt, enough.signal)), statuses };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    const problem = error instanceof RefusedError ? error.problem : { code: lastCode ?? error.code };
    return { ...soFar, problem };
  }
}

/** So many copies, one after the other or at once. */
export async function sendCopies(
  count: number,
  atOnce: boolean,
  send: (index: number) => Promise<Copy>,
): Promise<readonly Copy[]> {
  const indexes = Array.from({ length: count }, (_, index) => index);
  if (atOnce) return await Promise.all(indexes.map(send));
  const copies: Copy[] = [];
  for (const index of indexes) copies.push(await send(index));
  return copies;
}

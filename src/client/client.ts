import type * as v from 'valibot';
import { type Contract, contract } from '../protocol/contract.ts';
import type { doc } from '../protocol/schemas.ts';
import type { Answered, CallInput } from './call-types.ts';
import { systemClock } from './clock.ts';
import type { PreconditionFailedError } from './errors.ts';
import { isTerminal, type JobEvent, parseJobEvent } from './job-events.ts';
import { backOffMs, defaultPatience } from './retry-timing.ts';
import {
  type ClientOptions,
  createTableClient,
  type RunOptions,
  type StreamOptions,
  type TableClient,
} from './table-client.ts';
import { updateCurrent, type Version } from './update.ts';

/** A document as it is answered. */
export type Doc = v.InferOutput<typeof doc>;

/** What changes in a document: the members that are named. */
export type DocChange = CallInput<Contract['patchDoc']>['body'];

/** What an update may say besides. */
export type UpdateOptions = RunOptions & {
  /** Rounds before the conflict is yours. Default 10. */
  readonly maxRounds?: number;
};

/** What following a job may say besides. */
export type JobEventOptions = Pick<StreamOptions, 'signal' | 'patience' | 'silenceMs'> & {
  /** The `seq` behind which to go on. Default: from the start. */
  readonly after?: number;
};

/** A client of the contract. */
export type Client = TableClient<Contract> & {
  /**
   * Changes a document without losing anybody's edit: reads it, asks `change` what to write over it, and asks again over the newer
   * version when somebody was faster. `change` must make the change from what it is given each time; undefined changes nothing.
   * Throws MergeConflict<Doc, DocChange> after `maxRounds`, and the CallErrors.
   */
  updateDoc(
    id: string,
    change: (base: Doc) => DocChange | undefined | Promise<DocChange | undefined>,
    options?: UpdateOptions,
  ): Promise<Doc>;
  /**
   * Follows a job: every event once and in order, over as many connections as it takes, up to the terminal one. A job that has
   * ended before `after` gives none. Leaving the loop does not stop the job.
   */
  jobEvents(jobId: string, options?: JobEventOptions): AsyncGenerator<JobEvent, void, undefined>;
};

const defaultMaxRounds = 10;

/** A client of a server of ours. */
export function createClient(options: ClientOptions): Client {
  const table = createTableClient(contract, options);
  const { sleep } = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  return { ...table, updateDoc, jobEvents };

  function updateDoc(
    id: string,
    change: (base: Doc) => DocChange | undefined | Promise<DocChange | undefined>,
    { maxRounds = defaultMaxRounds, ...run }: UpdateOptions = {},
  ): Promise<Doc> {
    const patience = { ...defaultPatience, ...options.patience, ...run.patience };
    return updateCurrent<Doc, DocChange>({
      maxRounds,
      change,
      read: async () => versionOf(await table.call('getDoc', { params: { id } }, run)),
      write: async (body, ifMatch) => {
        const input = { params: { id }, body, ifMatch };
        return (await table.call('patchDoc', input, { ...run, wantsCurrent: true })).body;
      },
      current: currentOf,
      pause: (round) => sleep(backOffMs(round, patience, random), run.signal),
    });
  }

  function jobEvents(jobId: string, { after = 0, ...stream }: JobEventOptions = {}) {
    let lastSeq = after;
    return table.stream<'getJobEvents', JobEvent>(
      'getJobEvents',
      { params: { id: jobId } },
      {
        ...stream,
        lastEventId: after === 0 ? '' : String(after),
        isLast: ({ event }) => isTerminal(event),
        read(incoming) {
          const event = parseJobEvent(incoming);
          // A proxy that answers from its own memory may begin anew.
          if (event === undefined || event.seq <= lastSeq) return undefined;
          lastSeq = event.seq;
          return event;
        },
      },
    );
  }
}

function versionOf({ body, tag }: Answered<Contract['getDoc']>): Version<Doc> {
  return { resource: body, tag: tag ?? body.etag };
}

/** The document that a 412 has told of. */
function currentOf({ problem, currentTag }: PreconditionFailedError): Version<Doc> | undefined {
  const current = problem.current as Doc | undefined;
  return current === undefined || currentTag === undefined ? undefined : { resource: current, tag: currentTag };
}

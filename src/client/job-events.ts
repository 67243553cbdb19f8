import * as v from 'valibot';
import type { IncomingEvent } from '../protocol/event-parser.ts';
import { job, usage } from '../protocol/schemas.ts';

const seq = v.pipe(v.number(), v.integer());

/** Members of each event's data; members that a later server adds are let through. */
const shapes = {
  status: v.object({ seq, status: job.entries.status }),
  delta: v.object({ seq, text: v.string() }),
  reset: v.object({ seq, attempt: v.number() }),
  done: v.object({ seq, usage }),
  error: v.object({ seq, code: v.string() }),
  cancelled: v.object({ seq, usage }),
};

/**
 * An event of a job. `delta` continues the text, `reset` begins it anew (forget what was there), `done`, `error` and `cancelled`
 * are the last one.
 */
export type JobEvent = {
  [Name in keyof typeof shapes]: { readonly type: Name } & v.InferOutput<(typeof shapes)[Name]>;
}[keyof typeof shapes];

/** True for the name of an event after which nothing comes. */
export function isTerminal(name: string): boolean {
  return name === 'done' || name === 'error' || name === 'cancelled';
}

/** The event as it is typed; undefined for a name that a later server has added. Throws a TypeError for data that is not of its name. */
export function parseJobEvent({ event, data }: IncomingEvent): JobEvent | undefined {
  if (!Object.hasOwn(shapes, event)) return undefined;
  const type = event as keyof typeof shapes;
  const parsed = v.safeParse(shapes[type], JSON.parse(data));
  if (!parsed.success) throw new TypeError(`The data of ${event} is not of its shape: ${parsed.issues[0].message}`);
  return { type, ...parsed.output } as JobEvent;
}

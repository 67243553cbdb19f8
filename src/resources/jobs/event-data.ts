import { formatEvent } from '../../protocol/event-stream.ts';
import type { JobStatus, UsageItem } from './row.ts';

/** What a job's stream tells, without its number. */
export type JobEvent =
  | { readonly event: 'status'; readonly status: JobStatus }
  | { readonly event: 'delta'; readonly text: string }
  | { readonly event: 'reset'; readonly attempt: number }
  | { readonly event: 'done' | 'cancelled'; readonly usage: UsageItem }
  | { readonly event: 'error'; readonly code: string };

/** An event as it is kept. */
export type EventRow = { readonly seq: number; readonly event: JobEvent['event']; readonly data: string };

/** Longest text of one event, in UTF-16 units: bounds a line and a row, whatever the model says at once. */
const maxDeltaLength = 4_096;

/** Numbers an event; `data` is one line of JSON, lone surrogates and U+0000 escaped. */
export function eventRow(seq: number, event: JobEvent): EventRow {
  const { event: name, ...members } = event;
  return { seq, event: name, data: JSON.stringify({ seq, ...members }) };
}

/** Text as delta events, none too long. */
export function deltas(text: string): JobEvent[] {
  const events: JobEvent[] = [];
  for (let at = 0; at < text.length; at += maxDeltaLength) {
    events.push({ event: 'delta', text: text.slice(at, at + maxDeltaLength) });
  }
  return events;
}

/** Whether the stream ends with this event. */
export function isTerminal(event: JobEvent['event']): boolean {
  return event === 'done' || event === 'error' || event === 'cancelled';
}

/** The event as every reader gets it. */
export function eventBlock({ seq, event, data }: EventRow): string {
  return formatEvent({ id: String(seq), event, data });
}

import { trimBlanks } from './field-value.ts';

/** A W3C traceparent, taken apart. Ids are lower-case hex: 32 digits for the trace, 16 for the parent. `flags` is one byte; bit 0 says sampled. */
export type TraceContext = { readonly traceId: string; readonly parentId: string; readonly flags: number };

/** Bits that version 00 and Level 2 define (sampled, random trace id); the others must be sent as zero. */
const knownFlags = 0x03;

/** The trace that the header's lines name, or undefined when there is none to go on with (W3C Trace Context §3.2). */
export function parseTraceparent(lines: readonly string[]): TraceContext | undefined {
  if (lines.length !== 1) return undefined;
  const value = trimBlanks(lines[0] as string);
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s.exec(value);
  if (match === null) return undefined;
  const [, version, traceId, parentId, flags, rest] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  // A later version may append fields; version 00 has none and ff is forbidden.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (isZero(traceId) || isZero(parentId)) return undefined;
  return { traceId, parentId, flags: Number.parseInt(flags, 16) };
}

/** The header value, in version 00. */
export function formatTraceparent({ traceId, parentId, flags }: TraceContext): string {
  return `00-${traceId}-${parentId}-${(flags & knownFlags).toString(16).padStart(2, '0')}`;
}

function isZero(hex: string): boolean {
  return /^0+$/.test(hex);
}

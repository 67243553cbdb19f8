import type { JobRow, UsageItem } from './row.ts';

/** What one attempt adds to a job's usage. */
export type AttemptUsage = {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Sent, and nobody knows what became of it. */
  readonly isUnknown: boolean;
};

/** An attempt that used nothing. */
export const nothingUsed: AttemptUsage = { promptTokens: 0, completionTokens: 0, isUnknown: false };

/** Counts are int4 in the database; a provider that claims more is not believed. */
const maxTokens = 2_000_000_000;

/** A job's usage with one attempt more. */
export function addUsage(row: UsageItem, attempt: AttemptUsage): UsageItem {
  return {
    prompt_tokens: Math.min(row.prompt_tokens + attempt.promptTokens, maxTokens),
    completion_tokens: Math.min(row.completion_tokens + attempt.completionTokens, maxTokens),
    unknown_attempts: row.unknown_attempts + (attempt.isUnknown ? 1 : 0),
  };
}

/** What is known of an attempt whose worker cannot tell any more: the tokens that it put into events. */
export function recordedUsage(
  row: Pick<JobRow, 'attempt_tokens' | 'prompt_estimate'>,
  isUnknown: boolean,
): AttemptUsage {
  const hasBegun = row.attempt_tokens > 0;
  return {
    promptTokens: hasBegun ? row.prompt_estimate : 0,
    completionTokens: row.attempt_tokens,
    isUnknown,
  };
}

/** What a usage costs; the hold bounds what is charged of it. */
export function costOf(usage: UsageItem, priceMicros: number): number {
  return (usage.prompt_tokens + usage.completion_tokens) * priceMicros;
}

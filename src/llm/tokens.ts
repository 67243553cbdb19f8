/** UTF-8 bytes a token: about right for English, and too many tokens rather than too few for code. */
const BYTES_PER_TOKEN = 4;

/**
 * How many tokens a prompt is taken for, where the provider does not say: its UTF-8 bytes by four, rounded up.
 * The same for the same text for ever, so that a hold and its settlement agree. A provider's own count may be higher.
 */
export function estimatePromptTokens(prompt: string): number {
  return Math.ceil(Buffer.byteLength(prompt) / BYTES_PER_TOKEN);
}

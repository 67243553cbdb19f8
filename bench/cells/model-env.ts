/**
 * Variables of a server whose model takes `llmMs`. Time-outs are out of the way: a row lock is held and waited for as long
 * as its advocates would allow, and no arm is refused for its rate.
 */
export function modelEnv(llmMs: number): Readonly<Record<string, string>> {
  return {
    LLM_SIM_LATENCY_MS: String(llmMs),
    DB_QUERY_TIMEOUT_MS: '600000',
    RATE_LIMIT_RPM: '1000000',
    RATE_LIMIT_BURST: '1000000',
    WORKERS: '0',
  };
}

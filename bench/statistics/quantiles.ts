/** The value below which the fraction `q` of the sample lies (nearest rank). `sorted` ascends; NaN when it is empty. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const rank = Math.max(1, Math.ceil(q * sorted.length));
  return sorted[Math.min(rank, sorted.length) - 1] as number;
}

/** The middle of a sample in any order; the mean of the two middle ones when it is even. NaN when it is empty. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  const upper = sorted[half] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] as number) + upper) / 2;
}

/** Smallest and largest. */
export function spread(values: readonly number[]): readonly [number, number] {
  return [Math.min(...values), Math.max(...values)];
}

/** How a sample of latencies is told: median, tail and worst, in milliseconds. */
export function latencyMetrics(latenciesMs: readonly number[], prefix = '') {
  const sorted = Float64Array.from(latenciesMs).sort();
  return {
    [`${prefix}p50_ms`]: quantile(sorted, 0.5),
    [`${prefix}p95_ms`]: quantile(sorted, 0.95),
    [`${prefix}p99_ms`]: quantile(sorted, 0.99),
    [`${prefix}max_ms`]: quantile(sorted, 1),
  };
}

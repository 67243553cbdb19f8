/** What stands where a figure is void or was not measured. */
const noFigure = '–';

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** A number with as many digits as it deserves: `0.53`, `5.3`, `53`, `5,300`. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return noFigure;
  const size = Math.abs(value);
  if (size >= 100) return grouped.format(value);
  if (size >= 10) return value.toFixed(value % 1 === 0 ? 0 : 1);
  return value.toFixed(value % 1 === 0 ? 0 : 2);
}

/** Milliseconds as a person reads them: `0.84 ms`, `23 ms`, `8.15 s`. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return noFigure;
  return ms >= 1_000 ? `${formatNumber(ms / 1_000)} s` : `${formatNumber(ms)} ms`;
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Bytes in powers of 1,000: `412 B`, `1.02 kB`, `3.40 MB`. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return noFigure;
  const power = byteUnits.findLastIndex((_, index) => bytes >= 1_000 ** index);
  const index = Math.max(power, 0);
  return `${formatNumber(bytes / 1_000 ** index)} ${byteUnits[index]}`;
}

/** `7.1 times`. */
export function formatTimes(ratio: number): string {
  return `${formatNumber(ratio)} times`;
}

/** A count with its powers of ten readable: `10,000`. */
export function formatCount(value: number): string {
  return Number.isFinite(value) ? grouped.format(value) : noFigure;
}

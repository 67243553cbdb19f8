import { randomFillSync } from 'node:crypto';

/** Bytes fetched from the system at once: a call costs far more than the few bytes an id needs. */
const poolBytes = 4_096;

const pool = Buffer.alloc(poolBytes);
let used = poolBytes;

/** `length` unpredictable bytes, at most 4,096. */
export function random(length: number): Buffer {
  if (used + length > poolBytes) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = Buffer.from(pool.subarray(used, used + length));
  pool.fill(0, used, used + length);
  used += length;
  return bytes;
}

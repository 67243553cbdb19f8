/** `high`: new writes are refused, reads and replays go on. `severe`: nothing but health is answered. */
export type Pressure = 'none' | 'high' | 'severe';

/** How long work waits before it is begun, in milliseconds: for a pooled connection, and for the event loop. */
export type Waits = { readonly poolMs: number; readonly loopMs: number };

/** From these waits on it is kinder to refuse than to let everybody time out. Milliseconds. */
export type PressureLimits = { readonly poolMs: number; readonly loopMs: number };

/** A severe wait is this many times a high one. */
const severeFactor = 2.5;
/** How often the event loop's lateness is looked at. Milliseconds. */
const sampleMs = 100;

/** The pressure that waits make. */
export function pressureOf(waits: Waits, limits: PressureLimits): Pressure {
  const share = Math.max(waits.poolMs / limits.poolMs, waits.loopMs / limits.loopMs);
  if (share < 1) return 'none';
  return share < severeFactor ? 'high' : 'severe';
}

/** Watches how late the event loop is. */
export type LoopWatch = { lateMs(): number; stop(): void };

/** Samples the event loop: how much later than asked a timer came, and how overdue the next one is already. */
export function watchLoop(nowMs: () => number = () => performance.now()): LoopWatch {
  let dueMs = nowMs() + sampleMs;
  let lastLateMs = 0;
  const timer = setInterval(() => {
    const now = nowMs();
    lastLateMs = Math.max(0, now - dueMs);
    dueMs = now + sampleMs;
  }, sampleMs);
  timer.unref();
  return {
    lateMs: () => Math.max(lastLateMs, nowMs() - dueMs),
    stop: () => clearInterval(timer),
  };
}

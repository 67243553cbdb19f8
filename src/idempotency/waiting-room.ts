import type { Loop } from '../loop.ts';
import { startLoop } from '../loop.ts';

/** Duplicates that asked to wait (`Prefer: wait`) for the end of the first request with their key. */
export type WaitingRoom = {
  /**
   * Parks until the key may have moved on, `timeoutMs` have passed or `signal` aborts; without a database connection.
   * False: there is no room, or the server is stopping: answer at once.
   */
  park(tenant: string, key: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;
  /** A claim of this process has ended: whoever waits for it is woken at once. */
  wake(tenant: string, key: string): void;
  count(): number;
  /** Wakes everybody; from now on nobody is parked. */
  stop(): Promise<void>;
};

/** Requests parked in one process at most; each is an open socket and a small object. */
const maxParked = 2_000;
/** How often the keys of other processes are asked after, in one statement for all that are parked. */
const pollMs = 200;

/** `stillRunning` answers, of the keys given, those whose first request still runs. */
export function createWaitingRoom(
  stillRunning: (keys: readonly { tenant: string; key: string }[]) => Promise<Set<string>>,
  onError: (error: unknown) => void,
): WaitingRoom {
  const parked = new Map<string, Set<() => void>>();
  let count = 0;
  let loop: Loop | undefined;
  let stopped = false;

  const wakeName = (name: string) => {
    for (const leave of parked.get(name) ?? []) leave();
  };
  const pollOnce = async () => {
    const names = [...parked.keys()];
    if (names.length > 0) {
      const running = await stillRunning(names.map(keyOfName));
      for (const name of names) if (!running.has(name)) wakeName(name);
    }
    return { more: false };
  };

  return {
    park(tenant, key, timeoutMs, signal) {
      if (stopped || count >= maxParked || signal.aborted) return Promise.resolve(false);
      const name = nameOfKey(tenant, key);
      loop ??= startLoop(pollOnce, pollMs, onError);
      return new Promise((resolve) => {
        const leave = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', leave);
          const others = parked.get(name);
          others?.delete(leave);
          if (others?.size === 0) parked.delete(name);
          count -= 1;
          resolve(true);
        };
        const timer = setTimeout(leave, timeoutMs);
        signal.addEventListener('abort', leave);
        const others = parked.get(name) ?? new Set();
        parked.set(name, others.add(leave));
        count += 1;
      });
    },
    wake: (tenant, key) => wakeName(nameOfKey(tenant, key)),
    count: () => count,
    async stop() {
      stopped = true;
      for (const name of [...parked.keys()]) wakeName(name);
      await loop?.stop();
    },
  };
}

/** Tenant and key as one string; neither can hold a blank. */
export function nameOfKey(tenant: string, key: string): string {
  return `${tenant} ${key}`;
}

function keyOfName(name: string): { tenant: string; key: string } {
  const blank = name.indexOf(' ');
  return { tenant: name.slice(0, blank), key: name.slice(blank + 1) };
}

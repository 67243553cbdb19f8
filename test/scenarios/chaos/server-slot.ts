import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { testSecret } from '../../helpers/server.ts';
import type { Window } from './failpoints.ts';
import { stopSafely } from './stop-safely.ts';

/** A server process that is killed and started again, under one name. */
export type ServerSlot = {
  readonly name: string;
  /** Starts a process; resolves when it listens. */
  start(): Promise<void>;
  /** Ends the process with the signal and resolves when it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Stands still until it goes on. */
  stop(): void;
  goOn(): void;
  /**
   * The next time the process goes through the window, it sends itself the signal; resolves then, or when it has ended. False:
   * not within the limit.
   */
  arm(window: Window, signal: NodeJS.Signals, limitMs: number): Promise<boolean>;
  /** Resolves when the process that runs now has ended. */
  ended(): Promise<void>;
};

/** What is learnt from a slot. */
export type SlotEvents = {
  onUrl(url: string): void;
  /** The server's log, a line. */
  onLine(line: string): void;
  /** The process ended although nobody meant it to. */
  onCrash(sentence: string): void;
};

/** Lines of its last words. */
const keptLines = 12;

/** A slot without a process; `program` is the server as JavaScript. */
export function createSlot(
  name: string,
  program: string,
  env: Readonly<Record<string, string>>,
  events: SlotEvents,
): ServerSlot {
  let child: ChildProcess | undefined;
  let exited: Promise<unknown> = Promise.resolve();
  let isMeant = false;
  let onWindow: (line: string) => void = () => {};

  const start = async () => {
    isMeant = false;
    let isUp = false;
    const lastWords: string[] = [];
    const fresh = spawn(process.execPath, [program], {
      env: { ...process.env, AUTH_SECRET: testSecret, PORT: '0', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A terminal's Ctrl-C is for the bench alone, which then ends everything in order.
      detached: true,
    });
    child = fresh;
    fresh.stdin.on('error', () => {});
    const hear = (line: string) => {
      lastWords.push(line.slice(0, 600));
      if (lastWords.length > keptLines) lastWords.shift();
    };
    createInterface({ input: fresh.stderr }).on('line', hear);
    const listening = new Promise<string>((resolve) => {
      createInterface({ input: fresh.stdout }).on('line', (line) => {
        const url = /^listens on (\S+)$/.exec(line)?.[1];
        if (url !== undefined) resolve(url);
        else if (line.startsWith('window ')) onWindow(line);
        else {
          hear(line);
          events.onLine(line);
        }
      });
    });
    exited = once(fresh, 'exit').then(([code, signal]) => {
      // SIGKILL is always ours; a process that was asked to end must end well.
      if (!isUp || signal === 'SIGKILL' || (isMeant && code === 0)) return;
      events.onCrash(`${name} ended with ${signal ?? `exit code ${code}`}:\n${lastWords.join('\n')}`);
    });
    const url = await Promise.race([listening, exited.then(() => undefined)]);
    if (url === undefined) throw new Error(`${name} did not start:\n${lastWords.join('\n')}`);
    isUp = true;
    events.onUrl(url);
  };
  const signal = (what: NodeJS.Signals) => void child?.kill(what);

  return {
    name,
    start,
    stop: () => stopSafely(child?.pid === undefined ? [] : [child.pid]),
    goOn: () => signal('SIGCONT'),
    async end(what) {
      isMeant = true;
      signal(what);
      if (what === 'SIGKILL') signal('SIGCONT');
      await exited;
    },
    arm(window, what, limitMs) {
      return new Promise((resolve) => {
        const settle = (isHit: boolean) => {
          clearTimeout(timer);
          onWindow = () => {};
          resolve(isHit);
        };
        // Called off; whether that came in time, the process says.
        const timer = setTimeout(() => child?.stdin?.write(`${window}\n`), limitMs);
        onWindow = (line) => settle(!line.endsWith(' missed'));
        void exited.then(() => settle(true));
        child?.stdin?.write(`${window} ${what}\n`);
      });
    },
    async ended() {
      await exited;
    },
  };
}

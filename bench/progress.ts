/** Tells a person what is running and how long it will take. Writes to standard error, which `--json` leaves free. */
export type Progress = {
  /** Another part of a step has begun. */
  say(what: string): void;
  /** A step is over: the estimates of the rest follow from how long it took. */
  done(): void;
  end(): void;
};

/** A step: its name and how long it is expected to take, in milliseconds. */
export type Step = { readonly name: string; readonly estimateMs: number };

/** Milliseconds between two looks at the clock. */
const tickMs = 500;

/** A display over the steps in their order. On a terminal it is one line that changes; elsewhere, one line a step. */
export function startProgress(
  steps: readonly Step[],
  out: { readonly isTTY?: boolean; write(text: string): unknown },
  nowMs: () => number = () => performance.now(),
): Progress {
  let index = 0;
  let what = '';
  let stepStartedMs = nowMs();
  let shown = '';

  const line = () => {
    const step = steps[index];
    if (step === undefined) return '';
    const passedMs = nowMs() - stepStartedMs;
    // A step that takes longer than expected is nearly over, not overdue.
    const restOfStepMs = Math.max(step.estimateMs - passedMs, step.estimateMs * 0.05);
    const restMs = steps.slice(index + 1).reduce((sum, { estimateMs }) => sum + estimateMs, restOfStepMs);
    return `[${index + 1}/${steps.length}] ${step.name}${what === '' ? '' : ` · ${what}`} · ${formatLeft(restMs)} left`;
  };
  const show = (text: string) => {
    if (out.isTTY && text !== shown) out.write(`\r\u001b[2K${text}`);
    shown = text;
  };
  const announce = () => {
    if (!out.isTTY && steps[index] !== undefined) out.write(`${line()}\n`);
  };
  announce();
  const timer = setInterval(() => show(line()), tickMs);
  timer.unref();

  return {
    say(part) {
      what = part;
      show(line());
    },
    done() {
      index += 1;
      what = '';
      stepStartedMs = nowMs();
      announce();
      show(line());
    },
    end() {
      clearInterval(timer);
      show('');
    },
  };
}

/** `about 1:40` or `about 12 s`. */
export function formatLeft(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 60) return `about ${seconds} s`;
  return `about ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

import { spawn } from 'node:child_process';

/** A shell that stays open from step to step, so that a variable set in one is there in the next. */
export type Shell = {
  /** Runs a block and answers what it printed, on both streams. Rejects when it takes longer than `timeoutMs`. */
  run(block: string, timeoutMs?: number): Promise<string>;
  close(): void;
};

/** Starts a POSIX shell with the given variables. */
export function openShell(variables: Readonly<Record<string, string>>): Shell {
  const child = spawn('sh', [], { env: { ...process.env, ...variables }, stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdout.setEncoding('utf8');
  let count = 0;
  return {
    run(block, timeoutMs = 30_000) {
      count += 1;
      const end = `end-of-step-${count}`;
      return new Promise((resolve, reject) => {
        let output = '';
        const timer = setTimeout(
          () => settle(() => reject(new Error(`no end after ${timeoutMs} ms:\n${block}`))),
          timeoutMs,
        );
        const settle = (done: () => void) => {
          clearTimeout(timer);
          child.stdout.off('data', onData);
          child.off('exit', onExit);
          done();
        };
        const onExit = () => settle(() => reject(new Error(`the shell ended in the middle of:\n${block}`)));
        const onData = (chunk: string) => {
          output += chunk;
          const at = output.indexOf(`\n${end}\n`);
          if (at !== -1) settle(() => resolve(output.slice(0, at)));
        };
        child.stdout.on('data', onData);
        child.on('exit', onExit);
        child.stdin.write(`{\n${block}\n} 2>&1\nprintf '\\n%s\\n' '${end}'\n`);
      });
    },
    close() {
      child.stdin.end();
      child.kill();
    },
  };
}

/*
 * The server of the fault bench: the real one, which kills or stops itself in the window it is told on standard input
 * (`before_commit SIGKILL`, a line; the next time it goes through it). It ends when standard input does.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/db/pool.ts';
import { createSimulatedProvider } from '../../../src/llm/simulated.ts';
import { createLog } from '../../../src/log.ts';
import { serve } from '../../../src/serve.ts';
import { type Window, watchDatabase, watchProvider, withoutFence } from './failpoints.ts';
import { stopSafely } from './stop-safely.ts';
import { startingCredits } from './tenants.ts';

const config = parseConfig(process.env);
const armed = new Map<string, NodeJS.Signals>();
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [window = '', signal] = line.split(' ');
    if (signal === undefined) {
      if (armed.delete(window)) writeSync(1, `window ${window} missed\n`);
    } else armed.set(window, signal as NodeJS.Signals);
  })
  .on('close', () => process.exit(0));

const onWindow = (window: Window) => {
  const signal = armed.get(window);
  if (signal === undefined) return;
  armed.delete(window);
  // Not through the stream: it would be lost with the process.
  writeSync(1, `window ${window} ${signal}\n`);
  if (signal === 'SIGSTOP') stopSafely([process.pid]);
  else process.kill(process.pid, signal);
};
const reword = process.env.CHAOS_FENCE === 'out' ? withoutFence : undefined;

const serving = await serve({
  config,
  databaseUrl: config.databaseUrl as string,
  auth: { secret: config.auth.secret },
  log: createLog(config.logLevel, (line) => process.stdout.write(line)),
  provider: watchProvider(
    createSimulatedProvider({ latencyMs: config.llm.simLatencyMs, tokens: config.llm.simTokens }),
    onWindow,
  ),
  openDatabase: (options) => watchDatabase(openDatabase(options), onWindow, reword),
  seedCredits: startingCredits,
});
process.stdout.write(`listens on ${serving.url}\n`);
process.once('SIGTERM', async () => {
  await serving.stop();
  process.exit(0);
});

/*
 * A server process with the slow procedures of `stage.ts`, whose requests ask at `GATE_URL` whether they may go on.
 * `CLOCK_SKEW_MS` puts the clock of this process off.
 */
import { parseConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { serve } from '../../src/serve.ts';
import { passGate } from './gate.ts';
import { createStage, type Play } from './stage.ts';

const { GATE_URL: gateUrl, CLOCK_SKEW_MS: skewMs = '0', AUTH_SECRET: secret } = process.env;

const TrueDate = Date;
globalThis.Date = class extends TrueDate {
  constructor(...args: [] | [number | string]) {
    super(...((args.length === 0 ? [TrueDate.now() + Number(skewMs)] : args) as [number]));
  }
  static override now(): number {
    return TrueDate.now() + Number(skewMs);
  }
} as DateConstructor;

const play: Play = {
  prepare: ({ key = 'none' }) => passGate(gateUrl as string, 'prepare', key),
  before: (_tx, { key = 'none' }) => passGate(gateUrl as string, 'before', key),
  async after(_tx, { key = 'none' }) {
    await passGate(gateUrl as string, 'after', key);
    return undefined;
  },
};
const stage = createStage(gateUrl === undefined ? {} : play);

const config = parseConfig(process.env);
const serving = await serve({
  config,
  databaseUrl: config.databaseUrl as string,
  auth: { secret },
  log: createLog(config.logLevel, (line) => process.stdout.write(line)),
  procedures: stage.procedures,
});
process.stdout.write(`slow server listens on ${serving.url}\n`);
process.once('SIGTERM', async () => {
  await serving.stop();
  process.exit(0);
});

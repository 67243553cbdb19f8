import * as v from 'valibot';
import { type Mounted, mount } from '../../src/handler.ts';
import { procedure } from '../../src/protocol/procedure.ts';

const ping = procedure({
  method: 'GET',
  path: '/bench/ping',
  summary: 'Answer without a database.',
  answers: { 200: v.strictObject({ ok: v.boolean() }) },
});

/** `GET /bench/ping`: the whole pipeline of a read (token included) and nothing behind it. */
export function pingProcedures(): Mounted[] {
  return [mount(ping, { read: async () => ({ status: 200, body: { ok: true } }) })];
}

/** A process that does one thing once: it takes up the intent it finds in its file, else it makes one and saves it first. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createClient, type Intent } from '../../src/client/index.ts';

const [baseUrl = '', token = '', file = ''] = process.argv.slice(2);
const client = createClient({ baseUrl, token });
const order = { body: { cents: 700, item: 'once' } };

if (!existsSync(file)) {
  writeFileSync(file, JSON.stringify(client.intent('createOrder', order)), { flush: true });
}
const intent = JSON.parse(readFileSync(file, 'utf8')) as Intent<'createOrder'>;
const { body, replayed } = await client.run(intent);
console.log(JSON.stringify({ id: body.order_id, replayed }));

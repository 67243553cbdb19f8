import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { type Client, createTableClient, type Intent } from '../../src/client/index.ts';
import { procedure } from '../../src/protocol/procedure.ts';

/** Never called: what the compiler says of it is the test. */
export async function typesFollowFromTheTable(client: Client) {
  const order = await client.call('createOrder', { body: { cents: 1, item: 'x' } });
  const created: 201 = order.status;
  const id: string = order.body.order_id;
  const put = await client.call('putDoc', { params: { id }, body: { title: '', body: '' }, create: true });
  const either: 200 | 201 = put.status;
  const gone: undefined = (await client.call('deleteDoc', { params: { id }, ifMatch: '*' })).body;
  await client.call('listOrders');
  await client.call('listOrders', { query: { limit: 20 } }, {});
  const intent: Intent<'createOrder'> = client.intent('createOrder', { body: { cents: 1, item: 'x' } }, { key: 'k' });
  const again: string = (await client.run(intent)).body.order_id;

  // @ts-expect-error no such procedure
  await client.call('createOrders', {});
  // @ts-expect-error a body is needed
  await client.call('createOrder');
  // @ts-expect-error cents are numbers
  await client.call('createOrder', { body: { cents: '1', item: 'x' } });
  // @ts-expect-error the path has another name
  await client.call('getOrder', { params: { key: 'x' } });
  // @ts-expect-error the write names no version
  await client.call('patchDoc', { params: { id }, body: {} });
  // @ts-expect-error one or the other
  await client.call('putDoc', { params: { id }, body: { title: '', body: '' }, create: true, ifMatch: '*' });
  // @ts-expect-error a stream is followed, not called
  await client.call('getJobEvents', { params: { id } });
  // @ts-expect-error a read takes no intent
  client.intent('getOrder', { params: { id } });
  // @ts-expect-error this is no stream
  client.stream('getOrder', { params: { id } });
  return [created, either, gone, again];
}

const table = {
  addNote: procedure({
    method: 'POST',
    path: '/notes',
    summary: 'Add a note.',
    key: 'required',
    body: v.strictObject({ text: v.string(), tone: v.optional(v.string(), 'plain') }),
    answers: { 201: v.strictObject({ note_id: v.string() }) },
  }),
};

test('a client of one’s own table has its procedures and no others', async () => {
  const sent: string[] = [];
  const client = createTableClient(table, {
    baseUrl: 'http://notes.test',
    token: 't',
    fetch: async (input) => {
      sent.push(String(input));
      return Response.json({ note_id: 'n1' }, { status: 201 });
    },
  });
  const { body } = await client.call('addNote', { body: { text: 'x' } });
  const id: string = body.note_id;
  assert.equal(id, 'n1');
  assert.deepEqual(sent, ['http://notes.test/notes']);
  // @ts-expect-error this table has no orders
  await assert.rejects(client.call('createOrder', { body: { cents: 1, item: 'x' } }), TypeError);
});

test('a base URL that is none is refused when the client is made', () => {
  for (const baseUrl of [
    '',
    'server.test',
    'ftp://server.test',
    'http://server.test/?a=1',
    'http://server.test/#x',
    'http://a:b@server.test',
  ]) {
    assert.throws(() => createTableClient(table, { baseUrl, token: 't' }), TypeError, baseUrl);
  }
});

import { procedure } from './procedure.ts';
import * as s from './schemas.ts';

/** The wire contract: each procedure once. Routing, validation, handler types, client and OpenAPI follow from it. */
export const contract = {
  createOrder: procedure({
    method: 'POST',
    path: '/v1/orders',
    summary: 'Place an order.',
    key: 'required',
    body: s.orderInput,
    answers: { 201: s.order },
    answerHeaders: ['Location'],
  }),
  listOrders: procedure({
    method: 'GET',
    path: '/v1/orders',
    summary: 'List orders, newest first.',
    tag: true,
    query: s.listQuery,
    answers: { 200: s.list(s.order) },
  }),
  getOrder: procedure({
    method: 'GET',
    path: '/v1/orders/{id}',
    summary: 'Read one order.',
    tag: true,
    answers: { 200: s.order },
  }),
  addCredits: procedure({
    method: 'POST',
    path: '/v1/credits',
    summary: 'Add model credits to the tenant.',
    scope: 'credits:write',
    key: 'required',
    body: s.creditInput,
    answers: { 201: s.ledgerEntry },
  }),
  listLedger: procedure({
    method: 'GET',
    path: '/v1/ledger',
    summary: 'See the credits: the balance, what is held, and every entry, newest first.',
    tag: true,
    query: s.listQuery,
    answers: { 200: s.ledger },
  }),
  getIdempotencyKey: procedure({
    method: 'GET',
    path: '/v1/idempotency-keys/{key}',
    summary: 'See what became of a key: its state, never its stored body.',
    answers: { 200: s.keyState },
  }),
};

/** The contract's own type, for handlers and the client. */
export type Contract = typeof contract;

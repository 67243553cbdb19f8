import { type Client, type ClientOptions, createClient } from '../../client/index.ts';
import { createExchangeLog, type ExchangeLog } from './exchange-log.ts';
import type { Tenant } from './tenants.ts';

/** One story of the page. */
export type Panel = {
  /** Its deep link: `#send-twice`. */
  readonly id: string;
  readonly title: string;
  /** What to do and what to look for, in a sentence or two. */
  readonly lead: string;
  /** Fills the place. Called once, when the tenants are known. */
  mount(place: HTMLElement, page: Page): void;
};

/** What every panel is given. */
export type Page = {
  /** The first is the one that acts; the second, where there is one, is the other tenant. */
  readonly tenants: readonly [Tenant, ...Tenant[]];
  /** A client of the project for a tenant, whose exchanges are shown in the log. */
  client(tenant: Tenant, log: ExchangeLog, options?: Partial<ClientOptions>): Client;
  createLog(label?: string): ExchangeLog;
};

/** The page of these tenants. */
export function createPage(tenants: Page['tenants']): Page {
  return {
    tenants,
    client: (tenant, log, options = {}) =>
      createClient({
        baseUrl: location.origin,
        token: tenant.token,
        fetch: log.fetchFor(tenant.tenant),
        ...options,
      }),
    createLog: createExchangeLog,
  };
}

import type { OpenRoute } from './app.ts';
import { openReply } from './open-routes.ts';
import type { Procedure } from './protocol/procedure.ts';
import { openApi } from './reference/openapi.ts';

/** The version that the OpenAPI document carries; the contract's, not a build's. */
export const contractVersion = '1.0.0';

/** `/openapi.json`, made once from the contract. */
export function openApiRoute(contract: Readonly<Record<string, Procedure>>): OpenRoute {
  const page = openReply(200, 'application/json', JSON.stringify(openApi(contract, contractVersion)));
  return { path: '/openapi.json', answer: () => page };
}

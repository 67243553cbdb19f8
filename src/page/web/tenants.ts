import { el, field } from './dom.ts';

/** Whom the page acts for. */
export type Tenant = { readonly tenant: string; readonly sub: string; readonly token: string };

/** The tokens that a server on this machine offers with its development secret; undefined: it offers none. */
export async function offeredTenants(): Promise<readonly Tenant[] | undefined> {
  const answer = await fetch('/dev/tokens', { headers: { accept: 'application/json' } });
  return answer.ok ? ((await answer.json()) as Tenant[]) : undefined;
}

/** A form for tokens, where none are offered. They stay in this page: nothing stores them. */
export function tokenForm(onTenants: (tenants: readonly [Tenant, ...Tenant[]]) => void): HTMLElement {
  const mine = el('input', { type: 'password', autocomplete: 'off', required: true });
  const other = el('input', { type: 'password', autocomplete: 'off' });
  const problem = el('p', { class: 'status', role: 'alert' });
  const form = el(
    'form',
    { class: 'tokens', 'aria-labelledby': 'tokens-title' },
    el('h2', { id: 'tokens-title' }, 'Whom to act for'),
    el(
      'p',
      {},
      'This server offers no tokens. Paste one, and a second of another tenant to see that tenants never meet.',
    ),
    field('Token', mine),
    field('Token of another tenant (optional)', other),
    el('button', { type: 'submit' }, 'Use them'),
    problem,
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const [first, ...rest] = [mine.value, other.value].filter((value) => value.trim() !== '').map(tenantOf);
    if (first === undefined || [first, ...rest].some((tenant) => tenant === undefined)) {
      problem.textContent = 'This is no token: it has three parts with dots between, and names a tenant.';
      return;
    }
    form.remove();
    onTenants([first, ...(rest as Tenant[])]);
  });
  return form;
}

/** What a token says of itself; whether that is true the server decides. */
function tenantOf(token: string): Tenant | undefined {
  try {
    const [, payload = ''] = token.trim().split('.');
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    const { tenant, sub = '' } = JSON.parse(new TextDecoder().decode(bytes)) as { tenant?: string; sub?: string };
    return tenant === undefined ? undefined : { tenant, sub, token: token.trim() };
  } catch {
    return undefined;
  }
}

/** A key that this tab has sent, newest first in lists. */
export type UsedKey = {
  readonly tenant: string;
  readonly key: string;
  /** The first request it was sent with: `POST /v1/orders`. */
  readonly line: string;
};

/** Keys that are remembered; the oldest go first. */
const mostKept = 20;
const name = 'used-keys';
const listeners = new Set<() => void>();

/** The keys this tab has sent, the newest first; they outlast a reload and not the tab. */
export function usedKeys(): readonly UsedKey[] {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? '[]') as UsedKey[];
  } catch {
    return [];
  }
}

/** Calls back whenever a key is sent for the first time. */
export function onUsedKey(listener: () => void): void {
  listeners.add(listener);
}

/** A `fetch` that remembers the keys it sends, from the moment they are sent. The token says whose they are. */
export function notingKeys(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    const key = headers.get('idempotency-key');
    const tenant = tenantOf(headers.get('authorization') ?? '');
    if (key !== null && tenant !== undefined) {
      const url = input instanceof Request ? input.url : String(input);
      note({ tenant, key, line: `${init?.method ?? 'GET'} ${new URL(url, location.href).pathname}` });
    }
    return fetch(input, init);
  };
}

function note(used: UsedKey): void {
  const known = usedKeys();
  if (known.some(({ tenant, key }) => tenant === used.tenant && key === used.key)) return;
  sessionStorage.setItem(name, JSON.stringify([used, ...known].slice(0, mostKept)));
  for (const listener of listeners) listener();
}

/** The tenant that a bearer token names, unverified. */
function tenantOf(authorization: string): string | undefined {
  try {
    const payload = authorization.split('.')[1] ?? '';
    const { tenant } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))) as { tenant?: string };
    return tenant;
  } catch {
    return undefined;
  }
}

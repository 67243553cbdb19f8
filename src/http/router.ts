/** A route's pattern: `/v1/docs/{id}`. A segment in braces takes any one segment that is not empty. */
export type Route<T> = { readonly method: string; readonly path: string; readonly target: T };

/** What the router says of a request line. */
export type Routed<T> =
  | { readonly kind: 'found'; readonly target: T; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method_not_allowed'; readonly allow: readonly string[] }
  | { readonly kind: 'not_found' };

type Node<T> = {
  readonly statics: Map<string, Node<T>>;
  param: { readonly name: string; readonly node: Node<T> } | undefined;
  readonly methods: Map<string, T>;
};

/** Longest path that is looked at, in characters. */
const maxPathLength = 2_048;

/** A router over the routes; `HEAD` is found wherever `GET` is. Throws when two routes are the same. */
export function createRouter<T>(routes: readonly Route<T>[]): (method: string, path: string) => Routed<T> {
  const root: Node<T> = { statics: new Map(), param: undefined, methods: new Map() };
  for (const route of routes) {
    let node = root;
    for (const segment of route.path.split('/').slice(1)) node = childFor(node, segment);
    if (node.methods.has(route.method)) throw new Error(`two procedures at ${route.method} ${route.path}`);
    node.methods.set(route.method, route.target);
  }

  return (method, path) => {
    if (!path.startsWith('/') || path.length > maxPathLength) return { kind: 'not_found' };
    const params: Record<string, string> = {};
    let node = root;
    for (const raw of path.split('/').slice(1)) {
      const segment = decodeSegment(raw);
      if (segment === undefined) return { kind: 'not_found' };
      const next = node.statics.get(segment);
      if (next !== undefined) node = next;
      else if (node.param !== undefined && segment !== '') {
        params[node.param.name] = segment;
        node = node.param.node;
      } else return { kind: 'not_found' };
    }
    if (node.methods.size === 0) return { kind: 'not_found' };
    const target = node.methods.get(method) ?? (method === 'HEAD' ? node.methods.get('GET') : undefined);
    if (target !== undefined) return { kind: 'found', target, params };
    const allow = [...node.methods.keys()].flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name]));
    return { kind: 'method_not_allowed', allow };
  };
}

function childFor<T>(node: Node<T>, segment: string): Node<T> {
  const name = /^\{([a-z_]+)\}$/.exec(segment)?.[1];
  const empty = (): Node<T> => ({ statics: new Map(), param: undefined, methods: new Map() });
  if (name !== undefined) {
    node.param ??= { name, node: empty() };
    if (node.param.name !== name) throw new Error(`two names for one segment: ${node.param.name}, ${name}`);
    return node.param.node;
  }
  const child = node.statics.get(segment) ?? empty();
  node.statics.set(segment, child);
  return child;
}

/** One segment percent-decoded; undefined for bad escapes, invalid UTF-8 and U+0000. */
function decodeSegment(raw: string): string | undefined {
  if (!raw.includes('%')) return raw;
  try {
    const decoded = decodeURIComponent(raw);
    return decoded.includes('\u0000') ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** Path and query of a request target; the absolute form (RFC 9112 §3.2.2) is reduced to its path. */
export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const rest = target.slice(origin.length);
  const mark = rest.indexOf('?');
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark === -1 ? '' : rest.slice(mark + 1) };
}

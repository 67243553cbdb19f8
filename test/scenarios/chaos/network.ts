import type { Fault as ProxyFault } from '../../helpers/fault-proxy.ts';
import type { NetworkFault } from './history.ts';
import type { Random } from './random.ts';

/** The header by which a client tells the proxy what to do to its request; the server ignores it. */
export const networkHeader = 'x-chaos-network';

/** Kinds by how often they are drawn where something goes wrong at all. */
const drawn: readonly NetworkFault[] = [
  'drop_answer',
  'drop_answer',
  'drop_answer',
  'cut_answer',
  'cut_answer',
  'refuse',
  'hang',
  'delay',
  'duplicate',
  'duplicate',
];

/** What goes wrong with the next try, among the kinds that are allowed. */
export function drawNetworkFault(
  random: Random,
  share: number,
  allowed: (kind: NetworkFault) => boolean,
): NetworkFault {
  const kind = random.chance(share) ? random.pick(drawn) : 'none';
  return allowed(kind) ? kind : 'none';
}

/** What the proxy does to a request with these headers. */
export function proxyFault(headers: Readonly<Record<string, string>>): ProxyFault {
  switch (headers[networkHeader] as NetworkFault | undefined) {
    case 'refuse':
      return { kind: 'refuse', reset: true };
    case 'drop_answer':
      return { kind: 'drop_answer' };
    case 'cut_answer':
      return { kind: 'cut_answer', bodyBytes: 7 };
    case 'hang':
      return { kind: 'hang', what: 'answer' };
    case 'delay':
      return { kind: 'delay', ms: 150 };
    case 'duplicate':
      return { kind: 'duplicate' };
    default:
      return { kind: 'pass' };
  }
}

import { tenantDigest } from '../../src/auth/tenant-digest.ts';

/** A tag in a condition, relative to what is there: `ahead` versions from the current one, of the asker's tenant or another. */
export type TagRef = { readonly ahead: number; readonly own: boolean };

/** A condition before it meets a state. */
export type ConditionRef = 'absent' | 'any' | readonly TagRef[];

/** One step of a random walk. */
export type Step = {
  readonly tenant: string;
  readonly sub: string;
  readonly id: string;
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'PATCH' | 'DELETE';
  readonly ifMatch: ConditionRef;
  readonly ifNoneMatch: ConditionRef;
  readonly title: string;
  readonly body: string;
};

/** A document in memory: a deleted one keeps its version. */
type Doc = { version: number; isLive: boolean; isReborn: boolean; title: string; body: string; by: string };

/** What the server is expected to answer. */
export type Expected = {
  readonly status: number;
  readonly etag: string | null;
  readonly doc: Readonly<Doc> | undefined;
};

/** The store as the contract describes it, without a database. */
export type Model = {
  /** The header's value for a condition, before the step is taken. Undefined: no header. */
  header(step: Step, condition: ConditionRef): string | undefined;
  /** Takes the step and says what comes of it. */
  take(step: Step): Expected;
};

/** An empty store. */
export function createModel(): Model {
  const docs = new Map<string, Doc>();
  const find = (step: Step) => docs.get(`${step.tenant} ${step.id}`);
  const tagOf = (tenant: string, id: string, version: number) => `W/"${id}-v${version}.${tenantDigest(tenant)}"`;

  const names = (step: Step, condition: ConditionRef, version: number): boolean => {
    if (condition === 'absent') return false;
    if (condition === 'any') return true;
    return condition.some((tag) => tag.own && (find(step)?.version ?? 0) + tag.ahead === version);
  };

  const next = (step: Step, doc: Doc): void => {
    Object.assign(doc, { version: doc.version + 1, isReborn: false, title: step.title, body: step.body, by: step.sub });
  };

  /** The status, having changed the store. */
  const decide = (step: Step): number => {
    const { method, ifMatch, ifNoneMatch } = step;
    const doc = find(step);
    const isRead = method === 'GET' || method === 'HEAD';
    if (!isRead && ifMatch === 'absent') {
      if (method !== 'PUT' || ifNoneMatch !== 'any') return 428;
      if (doc?.isLive) return 412;
      const reborn = { version: (doc?.version ?? 0) + 1, isLive: true, isReborn: true };
      docs.set(`${step.tenant} ${step.id}`, { ...reborn, title: step.title, body: step.body, by: step.sub });
      return 201;
    }
    if (!doc?.isLive) return 404;
    const isWanted = ifMatch === 'absent' || names(step, ifMatch, doc.version);
    const isUnwanted = names(step, ifNoneMatch, doc.version);
    if (isRead) return !isWanted ? 412 : isUnwanted ? 304 : 200;
    const isSame = doc.title === step.title && doc.body === step.body;
    if (!isWanted || isUnwanted) {
      const isRepeated =
        method === 'PUT' &&
        ifMatch !== 'any' &&
        names(step, ifMatch, doc.version - 1) &&
        !isUnwanted &&
        isSame &&
        doc.by === step.sub &&
        !doc.isReborn;
      return isRepeated ? 200 : 412;
    }
    if (method === 'DELETE') {
      doc.isLive = false;
      return 204;
    }
    if (method === 'PUT' || !isSame) next(step, doc);
    return 200;
  };

  return {
    header(step, condition) {
      if (condition === 'absent') return undefined;
      if (condition === 'any') return '*';
      const version = find(step)?.version ?? 0;
      const other = step.tenant === 'acme' ? 'globex' : 'acme';
      return condition.map((tag) => tagOf(tag.own ? step.tenant : other, step.id, version + tag.ahead)).join(', ');
    },
    take(step) {
      const status = decide(step);
      const doc = find(step);
      const hasTag = doc?.isLive && status !== 428;
      return { status, etag: hasTag && doc ? tagOf(step.tenant, step.id, doc.version) : null, doc: doc && { ...doc } };
    },
  };
}

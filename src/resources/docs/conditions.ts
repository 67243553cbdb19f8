import { tenantDigest } from '../../auth/tenant-digest.ts';
import type { Context } from '../../handler.ts';
import { type Problem, problem } from '../../protocol/errors.ts';
import { parsePrefer } from '../../protocol/prefer.ts';
import { docId } from '../../protocol/schemas.ts';
import {
  allowsVersion,
  anyVersion,
  noVersion,
  type VersionCondition,
  versionCondition,
} from '../../protocol/version-condition.ts';
import { docBody, docTag } from './item.ts';
import { type DocHead, type DocName, type DocRow, findDoc, type Run } from './store.ts';

/** What a request is about, and what it asks of it before it does anything. */
export type Target = {
  readonly name: DocName;
  readonly condition: VersionCondition;
  /** Whether a 412 shall carry the document (`Prefer: return=representation`). */
  readonly showsCurrent: boolean;
};

/** The target of a request. Throws 404 for what can't be a document's id. */
export function targetOf(id: string, ctx: Context): Target {
  if (!docId.test(id)) throw problem('not_found');
  return {
    name: { tenant: ctx.tenant, id },
    condition: versionCondition(ctx, id, tenantDigest(ctx.tenant)),
    showsCurrent: parsePrefer(ctx.header('prefer')).returnRepresentation,
  };
}

/** The 412 of a document that is at another version: its tag works on the next try, unless somebody is faster again. */
export function changed(tenant: string, doc: DocHead): Problem {
  const etag = docTag(tenant, doc);
  return problem('precondition_failed', {
    headers: { ETag: etag },
    members: {
      current_etag: etag,
      current_version: doc.version,
      changed_at: doc.updated_at.toISOString(),
      changed_by: doc.updated_by,
      ...(hasBody(doc) ? { current: docBody(tenant, doc) } : {}),
    },
  });
}

/** The document as it is now, with its body where a 412 shall show it. */
export async function currentDoc(target: Target, run: Run): Promise<DocHead | undefined> {
  const rows = await run((sql) => findDoc(sql, target.name, target.showsCurrent ? anyVersion : noVersion));
  return rows[0];
}

/** A write under a condition: one statement, and what to make of it when it has found nothing to write. */
export type Attempt = {
  /** The statement. Undefined: no row was at a version that is allowed. */
  write(): Promise<DocRow | undefined>;
  /** Whether this version may be what the request wanted, although the statement wrote nothing. Default: no. */
  mayBeDone?(doc: DocHead): boolean;
  /** Whether it is; asked of the whole document. */
  isDone?(doc: DocRow): boolean;
  /** A creation: nothing there is no 404, but a reason to try again. */
  readonly creates?: true;
};

/** The state changed between two statements so often that somebody else must be told to go first. */
const maxTries = 5;
/** And is told to come back after so long. Milliseconds. */
const busyRetryMs = 1_000;

/**
 * Writes, or throws 404 or 412. The state is read by a statement of its own after the write has found nothing: only that one
 * is sure to see what a writer that was waited for has committed, and so the tag of the 412 is the winner's.
 */
export async function writeUnderCondition(run: Run, target: Target, attempt: Attempt): Promise<DocRow> {
  const { name, condition } = target;
  for (let tries = 1; ; tries += 1) {
    const written = await attempt.write();
    if (written !== undefined) return written;
    const current = await currentDoc(target, run);
    if (current === undefined) {
      if (!attempt.creates) throw problem('not_found');
      if (tries === maxTries) throw problem('unavailable', { retryAfterMs: busyRetryMs });
      continue;
    }
    if (attempt.mayBeDone?.(current)) {
      const [whole] = await run((sql) => findDoc(sql, name, anyVersion));
      if (whole !== undefined && hasBody(whole) && whole.version === current.version && attempt.isDone?.(whole)) {
        return whole;
      }
    }
    // Allowed now: it was not there, or not at this version, when the statement ran.
    if (!allowsVersion(condition, current.version) || tries === maxTries) throw changed(name.tenant, current);
  }
}

/** True when the body was read. */
export function hasBody(doc: DocHead): doc is DocRow {
  return doc.body !== null;
}

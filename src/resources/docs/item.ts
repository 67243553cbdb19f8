import { tenantDigest } from '../../auth/tenant-digest.ts';
import type { Answer } from '../../handler.ts';
import { formatVersionTag } from '../../protocol/version-tag.ts';
import type { DocRow } from './store.ts';

/** The tag of a document's version. */
export function docTag(tenant: string, doc: Pick<DocRow, 'id' | 'version'>): string {
  return formatVersionTag(doc.id, doc.version, tenantDigest(tenant));
}

/** A document as lists show it. */
export function docItem(tenant: string, doc: Omit<DocRow, 'body'>) {
  return {
    id: doc.id,
    title: doc.title,
    version: doc.version,
    etag: docTag(tenant, doc),
    created_at: doc.created_at.toISOString(),
    updated_at: doc.updated_at.toISOString(),
    updated_by: doc.updated_by,
  };
}

/** A document as it is answered by itself. */
export function docBody(tenant: string, doc: DocRow) {
  const { id, title, ...rest } = docItem(tenant, doc);
  return { id, title, body: doc.body, ...rest };
}

/** The answer of a read or a write that ends with this document. */
export function docAnswer(status: 200 | 201, tenant: string, doc: DocRow, headers?: Record<string, string>): Answer {
  return { status, headers: { ...headers, ETag: docTag(tenant, doc) }, body: docBody(tenant, doc) };
}

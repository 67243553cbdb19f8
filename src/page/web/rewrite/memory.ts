import type { Intent } from '../../../client/index.ts';

/** What one tab knows of its document. */
export type RewriteMemory = {
  readonly tenant: string;
  readonly docId: string;
  /** A rewrite whose answer was not seen yet. */
  readonly intent?: Intent<'rewriteDoc'> | undefined;
};

const name = 'rewrite';

/** Keeps it for this tab, until it is closed. */
export function remember(memory: RewriteMemory): void {
  sessionStorage.setItem(name, JSON.stringify(memory));
}

/** The next document is a new one. */
export function forget(): void {
  sessionStorage.removeItem(name);
}

/** This tab's document, if it belongs to the tenant. */
export function recall(tenant: string): RewriteMemory | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(name) ?? 'null') as RewriteMemory | null;
    return kept?.tenant === tenant ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** A save that was answered with success. */
export type Save = {
  readonly by: string;
  /** The version the text was written from, and the one it became. */
  readonly from: number;
  readonly version: number;
  readonly base: string;
  readonly text: string;
};

/** An edit that the newest version no longer has, and nobody was told. */
export type LostEdit = { readonly by: string; readonly overwrittenBy: string; readonly lines: readonly string[] };

/** What the newest save has overwritten unseen: saves between the version it was written from and its own. */
export function lostEdits(saves: readonly Save[]): readonly LostEdit[] {
  const newest = saves.reduce<Save | undefined>(
    (a, b) => (a === undefined || b.version > a.version ? b : a),
    undefined,
  );
  if (newest === undefined) return [];
  const kept = new Set(newest.text.split('\n'));
  return saves
    .filter(({ version }) => version > newest.from && version < newest.version)
    .map(({ by, base, text }) => {
      const before = new Set(base.split('\n'));
      const lines = text.split('\n').filter((line) => !before.has(line) && !kept.has(line));
      return { by, overwrittenBy: newest.by, lines };
    })
    .filter(({ lines }) => lines.length > 0);
}

import type { Summary, VariantSummary } from './summary.ts';

/** A tree of JSON. */
export type Json = { readonly [name: string]: unknown };

/**
 * What `--json` prints. One cell alone is the object itself; several stand under `cells`. A cell is its first comparison,
 * and when there are more all of them stand under `variants`.
 */
export function jsonOf(summary: Summary): Json {
  const { environment, ok } = summary;
  const names = [...new Set(summary.variants.map((variant) => variant.cell))];
  const cells = Object.fromEntries(
    names.map((name) => {
      const variants = summary.variants.filter((variant) => variant.cell === name);
      const [first] = variants;
      const all = variants.length > 1 ? { variants: variants.map(variantJson) } : {};
      return [name, { ...variantJson(first as VariantSummary), ok: variants.every((variant) => variant.ok), ...all }];
    }),
  );
  const only = names.length === 1 ? cells[names[0] as string] : undefined;
  return only === undefined ? { ok, environment, cells } : { ...only, environment };
}

function variantJson(variant: VariantSummary): Json {
  const { cell, ok, settings, fault } = variant;
  const arms = Object.fromEntries(
    Object.entries(variant.arms).map(([name, arm]) => [
      name,
      {
        ...nest(arm.median),
        rounds: arm.rounds,
        statuses: arm.statuses,
        void: arm.isVoid,
        spread: nest(arm.spread),
      },
    ]),
  );
  const ratios = Object.fromEntries(Object.entries(variant.ratios).map(([name, ratio]) => [name, round(ratio.median)]));
  const spreads = Object.fromEntries(
    Object.entries(variant.ratios).map(([name, ratio]) => [`${name}_spread`, ratio.spread.map(round)]),
  );
  return {
    cell,
    ok,
    settings,
    arms,
    ...ratios,
    ...spreads,
    checks: variant.checks,
    ...(fault === undefined ? {} : { fault }),
  };
}

/** `{'probe.max_ms': 3}` as `{probe: {max_ms: 3}}`; numbers rounded. */
export function nest(flat: Readonly<Record<string, number | readonly number[]>>): Json {
  const tree: Record<string, Record<string, unknown> | unknown> = {};
  for (const [name, value] of Object.entries(flat)) {
    const rounded = typeof value === 'number' ? round(value) : value.map(round);
    const [group, member] = name.split('.', 2) as [string, string | undefined];
    if (member === undefined) tree[group] = rounded;
    else tree[group] = { ...(tree[group] as Record<string, unknown> | undefined), [member]: rounded };
  }
  return tree;
}

/** Four significant digits say more than any of these figures knows; large whole numbers stay whole. */
function round(value: number): number {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(4));
}

import { MergeConflict, PreconditionFailedError } from './errors.ts';

/** A resource as it was read, with its tag. */
export type Version<Resource> = { readonly resource: Resource; readonly tag: string };

/** How a kind of resource is updated. */
export type UpdateSteps<Resource, Change> = {
  /** Reads the resource anew. */
  read(): Promise<Version<Resource>>;
  /** The change, from the version it will be written over; undefined: nothing is to be changed. May be asked several times. */
  change(base: Resource): Change | undefined | Promise<Change | undefined>;
  /** Writes over the version with this tag alone, under a key of its own; throws PreconditionFailedError when there is another. */
  write(change: Change, tag: string): Promise<Resource>;
  /** The version that a refused write has told of, if it has. */
  current(refused: PreconditionFailedError): Version<Resource> | undefined;
  /** Waits a little before the next round, longer from round to round. */
  pause(round: number): Promise<void>;
  /** Rounds before the conflict is left to the caller, at least 1. */
  readonly maxRounds: number;
};

/**
 * Reads, changes, writes; when somebody else was faster, does it again over their version. Answers the resource as it is in the
 * end. A tag that was refused is never sent again: where a stale copy is read, it is read again. Throws a MergeConflict after
 * `maxRounds`, and whatever the steps throw.
 */
export async function updateCurrent<Resource, Change>(steps: UpdateSteps<Resource, Change>): Promise<Resource> {
  const refuted = new Set<string>();
  let lost: { base: Resource; mine: Change; refused: PreconditionFailedError } | undefined;
  let version = await steps.read();
  for (let round = 1; round <= steps.maxRounds; round += 1) {
    if (!refuted.has(opaque(version.tag))) {
      const base = version.resource;
      const mine = await steps.change(base);
      if (mine === undefined) return base;
      try {
        return await steps.write(mine, version.tag);
      } catch (error) {
        if (!(error instanceof PreconditionFailedError)) throw error;
        refuted.add(opaque(version.tag));
        lost = { base, mine, refused: error };
      }
    }
    const told = lost && steps.current(lost.refused);
    if (round < steps.maxRounds) await steps.pause(round);
    version = told !== undefined && !refuted.has(opaque(told.tag)) ? told : await steps.read();
  }
  throw conflict(lost, version.resource);
}

function conflict<Resource, Change>(
  lost: { base: Resource; mine: Change; refused: PreconditionFailedError } | undefined,
  theirs: Resource,
): Error {
  if (lost === undefined) return new RangeError('An update takes at least one round.');
  const { base, mine, refused } = lost;
  const message = 'Others changed it in every round: decide between mine and theirs.';
  return new MergeConflict(message, { ...refused, code: 'merge_conflict' }, { base, mine, theirs });
}

/** What names the version: gateways put `W/` on and take it off. */
function opaque(tag: string): string {
  return tag.replace(/^W\//, '');
}

import { setTimeout as sleep } from 'node:timers/promises';
import { type Trouble, troubles } from './faults.ts';
import type { Fault } from './history.ts';
import type { ServerSlot } from './server-slot.ts';
import type { World } from './world.ts';

/** Milliseconds between two troubles of one place, at least and at most. */
const pauses = { server: [100, 600], database: [700, 2_500], edge: [1_000, 3_000] } as const;
/** A pause is at least this share of the trouble before it: what is never well does nothing that could go wrong. */
const wellShare = 0.7;

/** Breaks things until `stop`, and leaves everything mended. */
export async function storm(
  world: World,
  options: {
    readonly isWanted: (kind: string) => boolean;
    readonly nowMs: () => number;
    readonly record: (fault: Fault) => void;
    readonly stop: AbortSignal;
  },
): Promise<void> {
  const { random, slots } = world;
  const deckOf = (place: Trouble['place']) => {
    const wanted = troubles.filter((trouble) => trouble.place === place && options.isWanted(trouble.kind));
    let deck: Trouble[] = [];
    return () => {
      if (deck.length === 0) deck = random.shuffle(wanted);
      return deck.pop();
    };
  };
  const track = async (place: Trouble['place'], draw: () => Trouble | undefined, slot: ServerSlot) => {
    const [min, max] = pauses[place];
    let lastedMs = 0;
    while (!options.stop.aborted) {
      const pauseMs = Math.max(random.between(min, max), wellShare * lastedMs);
      await sleep(pauseMs, undefined, { signal: options.stop }).catch(() => {});
      if (options.stop.aborted) return;
      const trouble = draw();
      if (trouble === undefined) return;
      const fromMs = options.nowMs();
      const came = await trouble.run(world, slot);
      const toMs = options.nowMs();
      lastedMs = came ? toMs - fromMs : 0;
      const what = place === 'server' ? slot.name : place;
      if (came) options.record({ kind: trouble.kind, what, fromMs, toMs });
    }
  };
  const serverDeck = deckOf('server');
  const [first] = slots as [ServerSlot];
  await Promise.all([
    ...slots.map((slot) => track('server', serverDeck, slot)),
    track('database', deckOf('database'), first),
    track('edge', deckOf('edge'), first),
  ]);
}

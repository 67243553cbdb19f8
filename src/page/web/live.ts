/** Between two looks, in milliseconds. */
const everyMs = 2_000;

/**
 * Looks again and again, as long as `place` is on the screen, the tab is in front and `isWanted` says so: what nobody sees is not
 * asked for. One look ends before the next begins. Answers a function that looks at once.
 */
export function lookWhileSeen(place: HTMLElement, look: () => Promise<void>, isWanted: () => boolean): () => void {
  let isSeen = false;
  let isLooking = false;
  let again = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const mayLook = () => isSeen && !document.hidden && isWanted();
  const run = async () => {
    clearTimeout(timer);
    if (isLooking) {
      again = true;
      return;
    }
    if (!mayLook()) return;
    isLooking = true;
    do {
      again = false;
      // A look that failed is not the last one.
      await look().catch(() => undefined);
    } while (again && mayLook());
    isLooking = false;
    timer = setTimeout(run, everyMs);
  };

  new IntersectionObserver((entries) => {
    isSeen = entries.at(-1)?.isIntersecting === true;
    void run();
  }).observe(place);
  document.addEventListener('visibilitychange', () => void run());
  return () => void run();
}

/**
 * Looks every `everyMs` whether something has come true and says so once; a look that fails counts for nothing. Answers what
 * ends it.
 */
export function watch(look: () => Promise<boolean>, everyMs: number, onTrue: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const next = () => {
    timer = setTimeout(async () => {
      const isTrue = await look().catch(() => false);
      if (isOver) return;
      if (isTrue) onTrue();
      else next();
    }, everyMs);
  };
  next();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

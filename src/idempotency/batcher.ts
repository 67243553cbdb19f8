/** Collects single requests into batches, one batch in flight at a time: alone, a request leaves at once; under load they travel together. */
export type Batcher<Request, Outcome> = (request: Request) => Promise<Outcome>;

type Waiting<Request, Outcome> = {
  readonly request: Request;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
};

/** `run` answers one outcome per request, in order; when it fails, each of its requests fails. */
export function createBatcher<Request, Outcome>(
  run: (requests: readonly Request[]) => Promise<readonly Outcome[]>,
  maxBatch: number,
): Batcher<Request, Outcome> {
  const waiting: Waiting<Request, Outcome>[] = [];
  let inFlight = false;

  const flush = async () => {
    const batch = waiting.splice(0, maxBatch);
    if (batch.length === 0) return;
    inFlight = true;
    try {
      const outcomes = await run(batch.map((entry) => entry.request));
      batch.forEach((entry, index) => {
        entry.resolve(outcomes[index] as Outcome);
      });
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    } finally {
      inFlight = false;
      void flush();
    }
  };

  return (request) =>
    new Promise((resolve, reject) => {
      waiting.push({ request, resolve, reject });
      if (!inFlight) {
        // Requests that were parsed in the same turn of the event loop go together.
        inFlight = true;
        setImmediate(() => void flush());
      }
    });
}

/** How a call ended, as the stub saw it. */
export type Outcome = 'answered' | 'replayed' | 'failed' | 'cut' | 'client_closed';

/** One call, in the order they came. */
export type SeenCall = {
  readonly idempotency_key: string | null;
  readonly traceparent: string | null;
  readonly model: string;
  readonly stream: boolean;
  outcome: Outcome | 'running';
  completion_tokens: number;
};

type Counts = { calls: number; prompt_tokens: number; completion_tokens: number };

/** What `GET /stats` answers. A replayed call is a call, and costs no tokens. */
export type StubStats = Counts & {
  active: number;
  outcomes: { [outcome in Outcome]: number };
  /** Of the keys seen first, up to 10,000. */
  by_key: { [key: string]: Counts };
  /** The last calls, up to 100, oldest first. */
  recent: SeenCall[];
};

/** Counts one call from its beginning to its end. */
export type CallCounter = {
  prompt(tokens: number): void;
  completion(tokens: number): void;
  /** Only the first end counts. */
  end(outcome: Outcome): void;
};

const MAX_KEYS = 10_000;
const MAX_RECENT = 100;

/** The books of a stub. `onChange` is told after every change. A call that runs across a reset still counts as active only. */
export function createStats(onChange: () => void): {
  read(): StubStats;
  reset(): void;
  begin(call: Omit<SeenCall, 'outcome' | 'completion_tokens'>): CallCounter;
} {
  let book = openBook();
  let active = 0;
  return {
    read: () =>
      structuredClone({ ...book.totals, active, by_key: Object.fromEntries(book.byKey), recent: book.recent }),
    reset() {
      book = openBook();
      onChange();
    },
    begin(call) {
      const seen: SeenCall = { ...call, outcome: 'running', completion_tokens: 0 };
      const { totals, byKey, recent } = book;
      const counted = [totals, countsOf(byKey, call.idempotency_key)];
      for (const counts of counted) counts.calls++;
      active++;
      recent.push(seen);
      if (recent.length > MAX_RECENT) recent.shift();
      onChange();
      return {
        prompt(tokens) {
          for (const counts of counted) counts.prompt_tokens += tokens;
        },
        completion(tokens) {
          seen.completion_tokens += tokens;
          for (const counts of counted) counts.completion_tokens += tokens;
          onChange();
        },
        end(outcome) {
          if (seen.outcome !== 'running') return;
          seen.outcome = outcome;
          totals.outcomes[outcome]++;
          active--;
          onChange();
        },
      };
    },
  };
}

function openBook() {
  const totals = {
    calls: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    outcomes: { answered: 0, replayed: 0, failed: 0, cut: 0, client_closed: 0 },
  };
  return { totals, byKey: new Map<string, Counts>(), recent: [] as SeenCall[] };
}

function countsOf(byKey: Map<string, Counts>, key: string | null): Counts {
  const counts = (key === null ? undefined : byKey.get(key)) ?? { calls: 0, prompt_tokens: 0, completion_tokens: 0 };
  if (key !== null && byKey.size < MAX_KEYS) byKey.set(key, counts);
  return counts;
}

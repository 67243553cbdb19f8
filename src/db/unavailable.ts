/**
 * What kept the database from answering: `closed` the pool is shutting down, `wait` no connection became free in time,
 * `connect` none could be opened, `lost` the session ended, `deadline` it took too long, `refused` the server had no means
 * (cancelled, disk full).
 */
export type UnavailableReason = 'closed' | 'wait' | 'connect' | 'lost' | 'deadline' | 'refused';

/**
 * The database did not answer; 503 to a client. `sent`: false means that nothing was executed. `commitUnknown`: true means
 * that an autocommitted statement or a COMMIT was sent and its answer is missing, so it may have taken effect; in all
 * other cases nothing was committed and nothing will be.
 */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
  readonly reason: UnavailableReason;
  readonly sent: boolean;
  readonly commitUnknown: boolean;

  constructor(reason: UnavailableReason, state: { sent: boolean; commitUnknown: boolean }, cause?: unknown) {
    super(sentences[reason], cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.sent = state.sent;
    this.commitUnknown = state.commitUnknown;
  }
}

const sentences: Readonly<Record<UnavailableReason, string>> = {
  closed: 'the database pool is closing',
  wait: 'no database connection became free in time',
  connect: 'no connection to the database could be opened',
  lost: 'the database session was lost',
  deadline: 'the database did not answer in time',
  refused: 'the database had no means to do the statement',
};

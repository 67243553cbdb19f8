import { AbortedError, type AttemptReport, RefusedError } from '../../../client/index.ts';
import { actionButton, el, field, status } from '../dom.ts';
import { createConnections } from '../job/connections.ts';
import { cuttable } from '../job/cuttable.ts';
import { createSourceLedger } from '../job/ledger.ts';
import { forget, type JobMemory, recall, remember } from '../job/memory.ts';
import { topUpMicros, wordsOf, wordsOfTry } from '../job/text.ts';
import type { Page, Panel } from '../panel.ts';

/** Makes the simulated model take its time: long enough to reload, cut and cancel. A real model takes it for text. */
const slowly = ' [[slow:20000]] [[tokens:80]]';

/** A job, its stream, and what becomes of them when things break. */
export const askAModel: Panel = {
  id: 'ask-a-model',
  title: 'Ask a model',
  lead: 'Ask, and while the answer streams in: reload the page, cut the connection, open a second tab. The job runs on the server, so it goes on, and it is paid once.',
  mount(place, page) {
    place.append(...panelOf(page));
  },
};

function panelOf({ tenants: [who], client, createLog }: Page): HTMLElement[] {
  const log = createLog();
  const say = status();
  const connections = createConnections();
  let isAway = false;
  const stream = cuttable(log.fetchFor(who.tenant), {
    opened(after) {
      connections.opened(after);
      if (connections.count() > 1 || isAway)
        say.say(`Reconnected behind event ${after}: nothing lost, nothing twice.`, 'good');
      isAway = false;
    },
    failed() {
      isAway = true;
      say.say('No answer, tries again behind the last event.', 'bad');
    },
  });
  const server = client(who, log, { fetch: stream.fetch });
  const ledger = createSourceLedger(server);

  const prompt = el('textarea', { rows: '2', required: true });
  prompt.value = 'Write a few lines about retries.';
  const slow = el('input', { type: 'checkbox', id: 'ask-slowly', checked: true });
  const answer = el('div', { class: 'answer', role: 'region', 'aria-label': 'The answer', tabindex: '0' });
  const facts = el('p', { class: 'job-facts' });
  const secondTab = el(
    'a',
    { class: 'second-tab', target: '_blank', rel: 'noopener', hidden: true },
    'Open a second tab',
  );
  const topUp = actionButton('Add credits and ask again', addAndAsk, failed, { class: 'top-up', hidden: true });
  const cancelButton = actionButton('Cancel', cancel, failed, { hidden: true });
  const cutButton = el('button', { type: 'button', 'aria-disabled': 'true', onclick: cut }, 'Cut the connection');

  let memory: JobMemory | undefined;
  let reading = new AbortController();
  let isReading = false;

  const kept = recall(who.tenant, location.search);
  if (kept !== undefined) void goOn(kept).catch(failed);

  return [
    el(
      'div',
      { class: 'split' },
      el(
        'div',
        {},
        field('What to ask', prompt),
        el(
          'p',
          { class: 'check' },
          slow,
          el(
            'label',
            { for: 'ask-slowly' },
            'Slowly, so that there is time to break it (the simulated model takes 20 s)',
          ),
        ),
        el(
          'div',
          { class: 'actions' },
          actionButton('Ask', ask, failed, { class: 'primary' }),
          cutButton,
          cancelButton,
          topUp,
        ),
        say.element,
        answer,
        facts,
        el('p', {}, secondTab),
      ),
      el('div', {}, ledger.element, el('h3', {}, 'Connections of this tab'), connections.element),
    ),
    log.element,
  ];

  /** A new job. What is asked is saved before it is sent: a reload before the answer asks under the same key. */
  async function ask(): Promise<void> {
    reading.abort();
    const text = prompt.value.trim() + (slow.checked ? slowly : '');
    const intent = server.intent('createJob', { body: { kind: 'generate', prompt: text, max_tokens: 256 } });
    // The address named another job.
    history.replaceState(null, '', `${location.pathname}#ask-a-model`);
    await goOn({ tenant: who.tenant, intent, seq: 0, text: '' });
  }

  /** Goes on wherever this tab has stopped: before the job, in the middle of its stream, or behind its end. */
  async function goOn(from: JobMemory): Promise<void> {
    save(from);
    topUp.hidden = true;
    answer.textContent = from.text;
    facts.textContent = '';
    connections.restart(from.seq);
    say.say(from.jobId === undefined ? 'Sent, and no answer yet.' : 'Goes on.');
    const jobId = from.jobId ?? (await createdBy(from.intent));
    if (from.jobId !== undefined) {
      const isFresh = from.seq === 0 && from.intent === undefined;
      say.say(
        isFresh ? 'This tab reads the same job, from its first event.' : `Went on behind event ${from.seq}.`,
        'good',
      );
    }
    save({ ...from, jobId });
    secondTab.href = `?job=${encodeURIComponent(jobId)}#ask-a-model`;
    secondTab.hidden = false;
    cancelButton.hidden = false;
    void read(jobId).catch(failed);
    await ledger.refresh((id) => id === jobId);
  }

  async function createdBy(intent: JobMemory['intent']): Promise<string> {
    if (intent === undefined) throw new TypeError('There is neither a job nor a question.');
    const { body, replayed } = await server.run(intent, { onAttempt: tellOfTry });
    say.say(
      replayed
        ? 'It was asked before and the answer was lost: the same key brought the same job, not a second one.'
        : 'The job is stored and runs. Now reload the page, cut the connection, or open a second tab.',
      'good',
    );
    return body.job_id;
  }

  function tellOfTry(report: AttemptReport): void {
    const words = wordsOfTry(report);
    if (words !== undefined) say.say(words, 'bad');
  }

  async function read(jobId: string): Promise<void> {
    reading = new AbortController();
    const { signal } = reading;
    setReading(true);
    try {
      for await (const event of server.jobEvents(jobId, { signal, after: memory?.seq ?? 0 })) {
        const problem = connections.event(event.seq);
        if (problem !== undefined) say.say(`The stream is not whole: ${problem}.`, 'bad');
        const before = event.type === 'reset' ? '' : (memory?.text ?? '');
        const text = event.type === 'delta' ? before + event.text : before;
        answer.textContent = text;
        save({ ...(memory as JobMemory), seq: event.seq, text });
        facts.textContent = `${jobId}, event ${event.seq}`;
      }
      await conclude(jobId);
    } catch (error) {
      if (!(error instanceof AbortedError)) throw error;
    } finally {
      if (!signal.aborted) setReading(false);
    }
  }

  /** Behind the last event: what the stream brought is held against what is stored. */
  async function conclude(jobId: string): Promise<void> {
    const { body: job } = await server.call('getJob', { params: { id: jobId } });
    const { prompt_tokens, completion_tokens } = job.usage;
    facts.textContent = `${jobId}, ${job.status}, ${memory?.seq} events, ${prompt_tokens} + ${completion_tokens} tokens, ${job.cost_micros.toLocaleString('en')} micros`;
    await ledger.refresh((id) => id === jobId);
    if (job.status === 'cancelled')
      say.say('Cancelled: what was used until then is charged, the rest of the hold is back.');
    else if (job.status !== 'succeeded') say.say(`The job ended as ${job.status}: ${job.error?.message ?? ''}`, 'bad');
    else if (job.result === memory?.text)
      say.say(`Done. What came${over()} is the stored result, letter for letter.`, 'good');
    else say.say('Done, but what was streamed is not the stored result.', 'bad');
  }

  function over(): string {
    const count = connections.count();
    return count > 1 ? ` over ${count} connections` : '';
  }

  function cut(): void {
    if (!isReading) return;
    say.say(
      'The connection is cut. The job goes on without us; the client will ask for what comes behind the last event.',
    );
    stream.cut();
  }

  /** PUT, as cancelling twice is the same as once; a job that has ended stays as it is. */
  async function cancel(): Promise<void> {
    const id = memory?.jobId;
    if (id === undefined) return;
    const { body } = await server.call('cancelJob', { params: { id } }, { onAttempt: tellOfTry });
    if (!isReading) say.say(`200: the job has ended before (${body.status}), and stays as it is.`);
  }

  /** 402 leaves the key as if never used: the same intent may run once there is credit. */
  async function addAndAsk(): Promise<void> {
    const again = memory;
    await server.call('addCredits', { body: { amount_micros: topUpMicros } });
    if (again !== undefined) await goOn(again);
  }

  function failed(error: unknown): void {
    setReading(false);
    if (error instanceof RefusedError && error.code === 'insufficient_credits') {
      say.say(
        '402: the credits do not cover this call. Nothing was started, and the key is still good: add credits and ask again.',
        'bad',
      );
      topUp.hidden = false;
      return;
    }
    // What can't be gone on with must not stand in the way of the next visit.
    if (error instanceof RefusedError) forget();
    say.say(wordsOf(error), 'bad');
  }

  function save(next: JobMemory): void {
    memory = next;
    remember(next);
  }

  function setReading(now: boolean): void {
    isReading = now;
    answer.setAttribute('aria-busy', String(now));
    cutButton.setAttribute('aria-disabled', String(!now));
  }
}

import type { Arm, Cell, CellOptions, Check, Prepared } from '../cell.ts';
import type { LoadSize } from '../options.ts';
import { calibrate, fire, type Shot } from '../stage/fire.ts';
import { prose } from '../stage/prose.ts';
import type { Stage } from '../stage/stage.ts';
import { rateEstimateMs, rateRounds, roundMs, warmUpMs } from './sizes.ts';

const armNames = ['full', 'version_304', 'hash_304'] as const;
const connections = 16;
/** Documents that are read in turn: more than one, so that no arm reads the same bytes again and again. */
const documents = 16;
/** Characters of a document's body. */
const bodyLengths: Readonly<Record<LoadSize, readonly number[]>> = {
  smoke: [20_000],
  quick: [1_000, 100_000, 1_000_000],
  usual: [1_000, 100_000, 1_000_000],
  full: [1_000, 100_000, 1_000_000],
};

/** Documents of three sizes: sent whole, 304 by version, 304 by hashing the body. */
export const tags: Cell = {
  name: 'tags',
  title: 'what a 304 saves: a document sent whole, 304 by its version, 304 by hashing its body',
  isUsual: true,
  takes: [],
  variants(options) {
    const rounds = options.rounds ?? rateRounds[options.size];
    // Half a second is a few hundred requests even for the largest.
    const forMs = roundMs[options.size] / 2;
    return bodyLengths[options.size].map((length) => ({
      cell: 'tags',
      settings: { body: length, connections },
      rounds,
      estimateMs: rateEstimateMs(options.size, armNames.length, rounds / 2),
      prepare: (stage) => prepare(stage, options, length, forMs),
    }));
  },
};

type Doc = { readonly id: string; readonly versionTag: string; readonly hashTag: string };

async function prepare(stage: Stage, { size }: CellOptions, length: number, forMs: number): Promise<Prepared> {
  const docs: Doc[] = [];
  for (let i = 0; i < documents; i += 1) docs.push(await createDoc(stage, i, length));
  let index = 0;
  const next = () => docs[index++ % docs.length] as Doc;
  const shots: Readonly<Record<(typeof armNames)[number], { shot: () => Shot; expect: number }>> = {
    full: { shot: () => ({ method: 'GET', path: `/v1/docs/${next().id}` }), expect: 200 },
    version_304: { shot: () => conditional(`/v1/docs/`, next(), 'versionTag'), expect: 304 },
    hash_304: { shot: () => conditional(`/bench/docs/`, next(), 'hashTag'), expect: 304 },
  };
  const checks: Check[] = [];
  const arms = armNames.map((name): Arm => {
    const volley = { url: stage.server.url, connections, headers: stage.headers, ...shots[name], signal: stage.signal };
    let amount = 0;
    return {
      name,
      async warmUp() {
        amount = await calibrate(volley, warmUpMs[size] / 2, forMs);
      },
      async run() {
        const fired = await fire({ ...volley, amount });
        checks.push({
          name: 'answers with the expected status',
          arm: name,
          expected: amount,
          actual: fired.statuses[volley.expect] ?? 0,
        });
        return fired;
      },
    };
  });
  return { arms, check: async () => [...checks, ...(await checkChanges(stage, docs[0] as Doc))] };
}

function conditional(path: string, doc: Doc, tag: 'versionTag' | 'hashTag'): Shot {
  return { method: 'GET', path: `${path}${doc.id}`, headers: { 'If-None-Match': doc[tag] } };
}

async function createDoc(stage: Stage, n: number, length: number): Promise<Doc> {
  const { status, text } = await stage.call('POST /v1/docs', {
    headers: { 'Idempotency-Key': `doc-${n}` },
    body: { title: `Document ${n}`, body: prose(n, length) },
  });
  if (status !== 201) throw new Error(`a document was answered with ${status}: ${text.slice(0, 500)}`);
  const { id } = JSON.parse(text) as { id: string };
  const [version, hash] = await Promise.all([stage.call(`GET /v1/docs/${id}`), stage.call(`GET /bench/docs/${id}`)]);
  return { id, versionTag: version.headers.get('etag') ?? '', hashTag: hash.headers.get('etag') ?? '' };
}

/** Whatever saves work must still see a change. */
async function checkChanges(stage: Stage, doc: Doc): Promise<Check[]> {
  const ask = (path: string, tag: string) => stage.call(`GET ${path}${doc.id}`, { headers: { 'If-None-Match': tag } });
  const put = await stage.call(`PUT /v1/docs/${doc.id}`, {
    headers: { 'If-Match': doc.versionTag },
    body: { title: 'changed', body: 'changed' },
  });
  const [byVersion, byHash] = await Promise.all([ask('/v1/docs/', doc.versionTag), ask('/bench/docs/', doc.hashTag)]);
  return [
    { name: 'a change is accepted', expected: 200, actual: put.status },
    { name: 'after a change the old tag gets the whole', arm: 'version_304', expected: 200, actual: byVersion.status },
    { name: 'after a change the old tag gets the whole', arm: 'hash_304', expected: 200, actual: byHash.status },
  ];
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cells } from '../../bench/cells/index.ts';
import { parseOptions, type RunOptions } from '../../bench/options.ts';

function options(...argv: string[]): RunOptions {
  const command = parseOptions(argv, cells);
  assert.equal(command.kind, 'run', command.kind === 'refused' ? command.sentence : command.kind);
  return (command as { options: RunOptions }).options;
}

function refusal(...argv: string[]): string {
  const command = parseOptions(argv, cells);
  assert.equal(command.kind, 'refused', `${argv.join(' ')} was taken`);
  return (command as { sentence: string }).sentence;
}

test('without a cell the usual ones are run, with --quick or --full all of them', () => {
  assert.ok(!options().cells.includes('overload'));
  assert.ok(options().cells.includes('locking'));
  for (const size of ['--quick', '--full']) assert.equal(options(size).cells.length, cells.length);
  assert.deepEqual(options('overload').cells, ['overload']);
});

test('only a run of everything replaces the report of the project', () => {
  assert.equal(options().out, 'docs');
  assert.equal(options('--full').out, 'docs');
  for (const argv of [['locking'], ['--quick'], ['--json'], ['--rounds', '2'], ['--pool', '5']]) {
    assert.equal(options(...argv).out, undefined, argv.join(' '));
  }
  assert.equal(options('locking', '--out', 'elsewhere').out, 'elsewhere');
});

test("the issue's command line means what it says", () => {
  const {
    cells: chosen,
    pool,
    concurrency,
    llmMs,
    json,
  } = options(...'locking --pool 5 --concurrency 40 --llm-ms 1000 --json'.split(' '));
  assert.deepEqual(
    { chosen, pool, concurrency, llmMs, json },
    {
      chosen: ['locking'],
      pool: 5,
      concurrency: 40,
      llmMs: 1_000,
      json: true,
    },
  );
});

test('a wrong option is refused with a sentence that says what is taken', () => {
  assert.match(refusal('lokcing'), /no cell "lokcing"; there are locking, contention/);
  assert.match(refusal('--rounds', '0'), /--rounds: got "0"; it takes a whole number from 1 to 100\./);
  assert.match(refusal('--rounds', '1.5'), /whole number/);
  assert.match(refusal('--pool', 'many'), /--pool: got "many"/);
  assert.match(refusal('--llm-ms', '5'), /from 10 to 60000/);
  assert.match(refusal('--fast'), /Unknown option '--fast'; --help/);
  assert.match(refusal('--quick', '--full'), /take one of them/);
  assert.match(refusal('--plant', 'anything'), /lost-update/);
  assert.match(refusal('--rounds'), /--rounds/);
  assert.match(refusal('--out', ''), /folder/);
});

test('an option that none of the chosen cells knows is refused instead of ignored', () => {
  assert.match(refusal('http', '--pool', '5'), /--pool means nothing to http/);
  assert.match(refusal('keys', '--llm-ms', '100'), /--llm-ms means nothing to keys/);
  assert.equal(options('http', 'keys', '--pool', '5').pool, 5);
});

test('every cell has comparisons in every size, with rounds enough for a spread where figures count', () => {
  for (const cell of cells) {
    for (const size of ['smoke', 'quick', 'usual', 'full'] as const) {
      const variants = cell.variants({ ...options(cell.name), size });
      assert.ok(variants.length > 0, `${cell.name} ${size}`);
      const names = variants.map((variant) => JSON.stringify(variant.settings));
      assert.equal(new Set(names).size, names.length, `${cell.name} ${size}: two comparisons are the same`);
      if (size === 'usual') for (const variant of variants) assert.ok(variant.rounds >= 3, cell.name);
    }
  }
});

import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { ratios } from './figures/index.ts';
import { parseLines } from './lines.ts';
import { summarise } from './statistics/summary.ts';

/*
 * The second of three programs: reads raw lines from the file it is given, or from standard input, and writes statistics
 * (one JSON object) to standard output.
 */

const [file] = process.argv.slice(2);
const lines = parseLines(await text(file === undefined ? process.stdin : createReadStream(file)));
process.stdout.write(`${JSON.stringify(summarise(lines, ratios), null, 2)}\n`);

// Runs all files of tests and prints TAP. Most tests wait for clocks, so three files run at once: `node --test` would run
// one on two processors, and its flag for the timeout is younger than the oldest Node that this package works with.
import { readdirSync } from 'node:fs';
import { run } from 'node:test';
import { tap } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.test.js')).map((name) => folder + name);
if (files.length === 0) throw new Error(`no tests in ${folder}`);

run({ files, concurrency: 3, timeout: 300_000 })
  .on('test:fail', () => { process.exitCode = 1; })
  .compose(tap)
  .pipe(process.stdout);

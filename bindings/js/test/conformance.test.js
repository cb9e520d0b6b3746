// Every vector that a producer can run, in Node; test/browser runs the same in Chromium.
import './support/globals.js';
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import * as protocol from 'alpheus/protocol';
import { conformance, OTHERS } from './support/conformance.js';

const VECTORS = new URL('../../../vectors/', import.meta.url);
const loaded = new Set();

async function load(file) {
  loaded.add(file);
  return readFile(new URL(file, VECTORS), 'utf8');
}

const suite = conformance(load, protocol);
for (const [name, run] of Object.entries(suite)) test(name, () => run(load));

test('no vector of a producer is left out', async () => {
  for (const folder of ['crypto', 'encrypted-stream', 'schema', 'ticks']) {
    for (const file of await readdir(new URL(`${folder}/v1/`, VECTORS))) {
      const path = `${folder}/v1/${file}`;
      assert.ok(loaded.has(path) !== OTHERS.includes(path), `${path} is neither run nor another party's`);
    }
  }
});

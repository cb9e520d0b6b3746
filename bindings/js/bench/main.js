// Figures of the package, as JSON: a tick of 683 words in Node and in Chromium, ten bins beside DAP's client, sizes.
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { gzipSync } from 'node:zlib';
import * as alpheus from 'alpheus';
import * as protocol from 'alpheus/protocol';
import { hasChromium, launch } from '../test/support/browser.js';
import { bundled } from '../test/support/bundle.js';
import { deviceFiles } from '../test/support/device.js';
import { bench } from './work.js';
import { besideDap } from './dap.js';

const read = (path) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const FITNESS = read('examples/fitness/schema.yaml');
// With noise offered for everything, no two bins share a word.
const UNPACKED = `${FITNESS.trimEnd()}
  - { name: any-noise, option: dp-aggregate, clients: [10], window: 10s, budget: { perWindow: 1, total: 3, unit: event } }
`;
const BINS = `\
name: Ten
tick: 10s
capacity: { population: 10000, events: 100 }
streamAttributes:
  - { name: bin, type: integer, min: 0, max: 9, aggregations: [{histogram: {lo: 0, width: 1, bins: 10}}] }
`;

// An event in the middle of all bounds.
function eventOf(schema) {
  const value = ({ kind }) => {
    if (kind.kind === 'truth') return true;
    if (kind.kind === 'text') return 'word';
    return Number((kind.min + kind.max) / 2n) / 10 ** kind.scale;
  };
  return Object.fromEntries(schema.attributes.map((attribute) => [attribute.name, value(attribute)]));
}

// The vectors' device, for another schema.
function filesFor(schema) {
  const file = { ...JSON.parse(deviceFiles.device), schema: protocol.toHex(alpheus.schemaId(schema)) };
  return { ...deviceFiles, device: JSON.stringify(file) };
}

async function inNode(yaml) {
  const schema = alpheus.schemaFromYaml(yaml);
  const device = await alpheus.readDevice(filesFor(schema), schema);
  return bench(protocol, { yaml, event: eventOf(schema), device });
}

async function inChromium(yaml) {
  const schema = alpheus.schemaFromYaml(yaml);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    // A secure origin, and clocks in steps of 5 µs.
    await page.route('http://localhost/', (route) => route.fulfill({
      body: '<!doctype html>', contentType: 'text/html',
      headers: { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' },
    }));
    await page.goto('http://localhost/');
    await page.addScriptTag({ content: await bundled(`
      import * as alpheus from 'alpheus'; import * as protocol from 'alpheus/protocol'; import { bench } from './bench/work.js';
      globalThis.run = async ({ yaml, files, event }) => {
        const device = await alpheus.readDevice(files, alpheus.schemaFromYaml(yaml));
        return bench(protocol, { yaml, event, device });
      };`, 'iife') });
    const results = await page.evaluate((given) => globalThis.run(given), { yaml, files: filesFor(schema), event: eventOf(schema) });
    return { version: browser.version(), ...results };
  } finally {
    await browser.close();
  }
}

async function size(names) {
  const code = await bundled(`export { ${names} } from 'alpheus';`);
  return { bytes: code.length, gzip: gzipSync(code, { level: 9 }).length };
}

const figures = {
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0].model,
  node: process.version,
  size: {
    producer: await size('Stream, readDevice, fetchTransport, schemaFromJson'),
    'with YAML and the database': await size('Stream, readDevice, fetchTransport, schemaFromYaml, storeDevice, loadDevice'),
  },
  fitness: { node: await inNode(FITNESS), chromium: hasChromium ? await inChromium(FITNESS) : undefined },
  unpacked: { node: await inNode(UNPACKED), chromium: hasChromium ? await inChromium(UNPACKED) : undefined },
  bins: { node: await inNode(BINS), dap: await besideDap() },
};
console.log(JSON.stringify(figures, (_, value) => (typeof value === 'number' && !Number.isInteger(value) ? Math.round(10 * value) / 10 : value), 1));

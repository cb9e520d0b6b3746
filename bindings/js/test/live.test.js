// A live service opens what Node, a page under a strict policy, a service worker and an edge runtime send: its rows are
// the plaintext's sums.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readDevice, schemaFromYaml, Stream } from 'alpheus';
import { createRelay, mutualTls, readDeviceFiles } from 'alpheus/node';
import { hasChromium, launch, openPage } from './support/browser.js';
import { bundled } from './support/bundle.js';
import { BINARY, hasBinary, startService } from './support/service.js';
import { startSite } from './support/site.js';

const noBinary = !hasBinary && 'the program is not built: cargo build --package alpheus';
// A device without a tick's frame is in no window; a busy machine needs some.
const SECONDS = 12;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The same event in each second, so that every whole window has the same sums.
const SENDS = `
async ({ alpheus, yaml, files, url, name, value, seconds }) => {
  const { fetchTransport, readDevice, schemaFromYaml, Stream } = alpheus;
  const schema = schemaFromYaml(yaml);
  const stream = await Stream.open({ schema, device: await readDevice(files, schema), transport: fetchTransport({ url, headers: { 'x-device': name } }) });
  for (let second = 0; second < seconds; second++) {
    await new Promise((resolve) => setTimeout(resolve, Math.ceil(Date.now() / 1000) * 1000 - Date.now() + 200));
    await stream.add({ reading: value, share: 0.25 });
  }
  await stream.flush();
  await stream.close();
  return stream.status;
}`;

function filesOf(service, name) {
  return readDeviceFiles(service.path(`${name}.device`), service.path(`pki/${name}`));
}

function transportOf(service, name) {
  return mutualTls({ server: service.url, identity: service.path(`pki/${name}`) });
}

async function inNode(service, name, value) {
  const schema = schemaFromYaml(service.schema);
  const device = await readDevice(await filesOf(service, name), schema);
  const transport = transportOf(service, name);
  const stream = await Stream.open({ schema, device, transport });
  for (let second = 0; second < SECONDS; second++) {
    await pause(Math.ceil(Date.now() / 1000) * 1000 - Date.now() + 200);
    await stream.add({ reading: BigInt(value), share: '0.25' });
  }
  await stream.flush();
  await stream.close();
  transport.close();
  return stream.status;
}

// Without an isolated world's own rules: the page's policy holds for what runs in it.
async function inPage(service, browser, site, value) {
  const page = await openPage(await browser.newContext(), site.url);
  const given = { yaml: service.schema, files: await filesOf(service, 'page'), url: '/alpheus', value, seconds: SECONDS };
  await page.evaluate((given) => { globalThis.given = given; }, given);
  const status = await page.evaluate(async () => {
    const { alpheus, given } = globalThis;
    const schema = alpheus.schemaFromYaml(given.yaml);
    const transport = alpheus.fetchTransport({ url: given.url, headers: { 'x-device': 'page' } });
    const stream = await alpheus.Stream.open({ schema, device: await alpheus.readDevice(given.files, schema), transport });
    for (let second = 0; second < given.seconds; second++) {
      await new Promise((resolve) => setTimeout(resolve, Math.ceil(Date.now() / 1000) * 1000 - Date.now() + 200));
      await stream.add({ reading: given.value, share: 0.25 });
    }
    await stream.flush();
    await stream.close();
    return stream.status;
  });
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  return status;
}

async function inServiceWorker(service, browser, site, value) {
  const page = await openPage(await browser.newContext(), site.url);
  const given = { yaml: service.schema, files: await filesOf(service, 'worker'), value, seconds: SECONDS };
  const answer = await page.evaluate(async (given) => {
    const answered = new Promise((resolve) => navigator.serviceWorker.addEventListener('message', ({ data }) => resolve(data)));
    await navigator.serviceWorker.register(globalThis.workerUrl(), { type: 'module' });
    const { active } = await navigator.serviceWorker.ready;
    active.postMessage(given);
    return answered;
  }, given);
  assert.equal(answer.failed, undefined);
  return answer.status;
}

async function atTheEdge(service, site, value) {
  const script = service.path('edge.js');
  const code = await bundled(`import * as alpheus from 'alpheus'; (${SENDS})({ alpheus, ...given }).then(finish, (failed) => finish({ failed: String(failed) }));`, 'iife');
  await writeFile(script, code);
  const given = { yaml: service.schema, files: await filesOf(service, 'edge'), url: `${site.url}/alpheus`, name: 'edge', value, seconds: SECONDS };
  const args = ['--disallow-code-generation-from-strings', fileURLToPath(new URL('support/edge.js', import.meta.url)), script, JSON.stringify(given)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

// A relay that asks the service as the device that a header names; a real site knows by its own session.
function relayOf(service, names) {
  const devices = new Map(names.map((name) => [name, { service: transportOf(service, name), streams: [service.streams[name]] }]));
  const handler = createRelay({ prefix: '/alpheus', authorize: async (request) => devices.get(request.headers['x-device']) });
  return { handler, close: () => devices.forEach((device) => device.service.close()) };
}

// The row of a window of all; none once a window from then on has a row.
const windowOfAll = (then) => (rows) => {
  const row = rows.find((each) => each.population === 4 && each.count_reading === 8);
  return (row !== undefined || rows.some((each) => each.window_start >= then)) && { row };
};

test('rows are the plaintext’s sums, wherever it is sent from', { skip: noBinary || (!hasChromium && 'there is no Chromium') }, async () => {
  const names = ['node', 'page', 'worker', 'edge'];
  const service = await startService(names);
  const relay = relayOf(service, names.slice(1));
  const site = await startSite(relay.handler);
  const browser = await launch();
  try {
    let row;
    // On a busy machine they may not be there at the same time.
    for (let tries = 0; tries < 5 && row === undefined; tries++) {
      const sent = await Promise.allSettled([
        inNode(service, 'node', 100),
        inPage(service, browser, site, 20),
        inServiceWorker(service, browser, site, 3),
        atTheEdge(service, site, 1),
      ]);
      for (const [i, { reason, value: status }] of sent.entries()) {
        assert.equal(reason, undefined, names[i]);
        assert.deepEqual([status.events, status.lost, status.refusals, status.state], [SECONDS, 0, [], 'closed'], names[i]);
      }
      ({ row } = await service.until('window of all, or of none any more', windowOfAll(Date.now())));
    }
    assert.equal(row?.status, 'ok', 'no window of all');
    assert.equal(row.sum_reading, String(2 * 124));
    assert.equal(row.var_reading, (100 ** 2 + 20 ** 2 + 3 ** 2 + 1) / 4 - 31 ** 2);
    assert.equal(row.sum_share, '2.00');
  } finally {
    await browser.close();
    await site.stop();
    relay.close();
    await service.stop();
  }
});

// Whatever the environment says, a peer that another authority certified is not asked.
async function onlyTheServiceIsAsked(service) {
  await promisify(execFile)(BINARY, ['ca', 'init', 'other'], { cwd: service.folder });
  for (const name of ['tls.pem', 'tls.key']) await copyFile(service.path(`pki/node/${name}`), service.path(`other/${name}`));
  const transport = mutualTls({ server: service.url, identity: service.path('other') });
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  try {
    await assert.rejects(transport.post('/v1/events', new Uint8Array(1), AbortSignal.timeout(60_000)), { code: /CERT|ISSUER|SIGNATURE|UNABLE/ });
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    transport.close();
  }
}

test('rows are the plaintext’s sums with a frame for each event', { skip: noBinary }, async () => {
  const service = await startService(['node'], { frames: 'frames: events' });
  try {
    const status = await inNode(service, 'node', 7);
    assert.deepEqual([status.events, status.lost, status.refusals, status.state], [SECONDS, 0, [], 'closed']);
    const row = await service.until('whole window', (rows) => rows.find((each) => each.population === 1 && each.count_reading === 2));
    assert.deepEqual([row.status, row.sum_reading, row.sum_share], ['ok', '14', '0.50']);
    await onlyTheServiceIsAsked(service);
  } finally {
    await service.stop();
  }
});
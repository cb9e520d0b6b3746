// In a real Chromium, under a strict policy: every vector of a producer, and no session that goes on.
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { parseTickFrame } from 'alpheus/protocol';
import { launch, launchWith, newProfile, noChromium, openPage } from './support/browser.js';
import { deviceFiles, SCHEMA } from './support/device.js';
import { recorder, startSite } from './support/site.js';

const TICK = 1_000_000;

describe('Chromium', { skip: noChromium }, () => {
  let site;
  let browser;
  let recorded;

  before(async () => {
    recorded = recorder();
    site = await startSite(recorded.relay);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await site?.stop();
  });

  // Opens a stream in a page, as `globalThis.stream`; the error's code if that is refused.
  const open = (page, more = {}) => page.evaluate(async ({ yaml, files, more }) => {
    const { readDevice, schemaFromYaml, fetchTransport, Stream, loadDevice } = globalThis.alpheus;
    const schema = schemaFromYaml(yaml);
    const device = more.stored === undefined ? await readDevice(files, schema) : await loadDevice(more.stored, schema);
    try {
      globalThis.stream = await Stream.open({ schema, device, transport: fetchTransport({ url: '/alpheus' }), wait: more.wait === true });
      return undefined;
    } catch (refused) {
      return refused.code;
    }
  }, { yaml: SCHEMA, files: deviceFiles, more });
  const send = (page, reading = 5) => page.evaluate(async (reading) => {
    await globalThis.stream.add({ reading });
    await globalThis.stream.flush();
    return globalThis.stream.status;
  }, reading);
  const close = (page) => page.evaluate(async () => {
    await globalThis.stream.close();
    return globalThis.stream.status;
  });

  // What frames claim; fails if a border of a session has two, which would use a pad twice.
  const claims = () => {
    const found = recorded.frames.map((frame) => ({ ...parseTickFrame(frame, TICK), frame: Buffer.from(frame).toString('hex') }));
    const seen = new Map();
    for (const { claim, opening, frame } of found) {
      if (opening) continue;
      const key = `${claim.session} ${claim.to}`;
      assert.ok((seen.get(key) ?? frame) === frame, 'two frames for one border');
      seen.set(key, frame);
    }
    return found;
  };
  const openings = () => claims().filter(({ opening }) => opening).map(({ claim }) => claim);
  const fresh = (run) => async () => {
    recorded.frames.length = 0;
    const context = await browser.newContext();
    try {
      await run(context);
      claims();
    } finally {
      await context.close();
    }
  };

  test('every vector of a producer', fresh(async (context) => {
    const page = await openPage(context, site.url);
    const results = await page.evaluate(async () => {
      const load = async (file) => (await fetch(`/repository/vectors/${file}`)).text();
      const results = [];
      for (const [name, run] of Object.entries(globalThis.conformance(load, globalThis.protocol))) {
        results.push([name, await run(load).then(() => 'passed', String)]);
      }
      return results;
    });
    assert.ok(results.length >= 28, `${results.length} groups of vectors`);
    for (const [name, result] of results) assert.equal(result, 'passed', name);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  }));

  test('a reload opens another session', fresh(async (context) => {
    const page = await openPage(context, site.url);
    await open(page);
    await send(page);
    await page.evaluate(() => globalThis.stream.add({ reading: 9 }));
    await page.reload();
    await page.waitForFunction(() => globalThis.alpheus !== undefined);
    // The browser gives the lock back a moment after the page has gone.
    assert.equal(await open(page, { wait: true }), undefined);
    await send(page);
    await close(page);
    const [first, second, ...others] = openings();
    assert.deepEqual(others, []);
    assert.notEqual(first.session, second.session);
    assert.ok(second.to > first.to);
  }));

  test('a second tab is refused, or waits for the first', fresh(async (context) => {
    const [one, two, three] = [await openPage(context, site.url), await openPage(context, site.url), await openPage(context, site.url)];
    assert.equal(await open(one), undefined);
    assert.equal(await open(two), 'InUse');
    const waiting = open(two, { wait: true });
    const status = await send(one);
    assert.equal(status.lost, 0);
    await close(one);
    assert.equal(await waiting, undefined);
    await send(two);
    // A tab that goes away without a word gives the stream free.
    await two.close();
    assert.equal(await open(three, { wait: true }), undefined);
    await close(three);
    assert.equal(new Set(openings().map(({ session }) => session)).size, 3);
  }));

  test('a clock that is set back opens another session, and one that slept leaves a gap', fresh(async (context) => {
    const page = await openPage(context, site.url);
    await page.evaluate(() => {
      const { now } = Date;
      globalThis.offset = 0;
      Date.now = () => now() + globalThis.offset;
    });
    await open(page);
    await send(page);
    await page.evaluate(() => { globalThis.offset = 20_000; });
    const slept = await send(page);
    assert.equal(slept.sessions, 1);
    assert.ok(claims().some(({ claim }) => claim.kind === 2), 'no gap');
    await page.evaluate(() => { globalThis.offset = -3_600_000; });
    // The event waits for the new session.
    await page.evaluate(() => globalThis.stream.add({ reading: 7 }));
    const stepped = await page.evaluate(async () => {
      await globalThis.stream.flush();
      return globalThis.stream.status;
    });
    assert.equal(stepped.sessions, 2);
    await close(page);
    const [first, second] = openings();
    assert.notEqual(first.session, second.session);
    assert.ok(second.to < first.to, 'it follows the clock');
  }));

  test('a private window keeps a device only as long as it is open', fresh(async (context) => {
    const page = await openPage(context, site.url);
    const stored = await page.evaluate(async ({ yaml, files }) => {
      const { readDevice, schemaFromYaml, storeDevice, loadDevice } = globalThis.alpheus;
      const schema = schemaFromYaml(yaml);
      await storeDevice('watch', await readDevice(files, schema));
      const device = await loadDevice('watch', schema);
      const exported = await crypto.subtle.exportKey('raw', device.master.handle).then(() => 'exported', (refused) => refused.name);
      const signing = await crypto.subtle.exportKey('pkcs8', device.identity.key.handle).then(() => 'exported', (refused) => refused.name);
      return { exported, signing, extractable: [device.master.handle.extractable, device.identity.key.handle.extractable] };
    }, { yaml: SCHEMA, files: deviceFiles });
    // A key to derive from has no form to export.
    assert.deepEqual([stored.exported, stored.signing], ['NotSupportedError', 'InvalidAccessError']);
    assert.deepEqual(stored.extractable, [false, false]);
    assert.equal(await open(page, { stored: 'watch' }), undefined);
    await send(page);
    await close(page);
    const other = await browser.newContext();
    const again = await openPage(other, site.url);
    const found = await again.evaluate((yaml) => globalThis.alpheus.loadDevice('watch', globalThis.alpheus.schemaFromYaml(yaml)), SCHEMA);
    assert.equal(found, undefined);
    await other.close();
  }));

  test('a page without HTTPS is refused in words', fresh(async (context) => {
    const page = await openPage(context, site.url.replace('localhost', 'elsewhere.test'));
    assert.equal(await open(page).catch((failed) => failed.message.match(/serve it over HTTPS/)?.[0]), 'serve it over HTTPS');
  }));

  test('a restored profile opens a session of its own', async () => {
    recorded.frames.length = 0;
    const [original, restored] = [await newProfile(), await newProfile()];
    let first = await launchWith(original.folder);
    let copy;
    try {
      let page = await openPage(first, site.url);
      await page.evaluate(async ({ yaml, files }) => {
        const { readDevice, schemaFromYaml, storeDevice } = globalThis.alpheus;
        await storeDevice('watch', await readDevice(files, schemaFromYaml(yaml)));
      }, { yaml: SCHEMA, files: deviceFiles });
      await open(page, { stored: 'watch' });
      await send(page);
      await first.close();
      await cp(original.folder, restored.folder, { recursive: true, filter: (file) => !/Singleton/.test(file) });
      first = await launchWith(original.folder);
      copy = await launchWith(restored.folder);
      page = await openPage(first, site.url);
      const other = await openPage(copy, site.url);
      assert.deepEqual(await Promise.all([open(page, { stored: 'watch' }), open(other, { stored: 'watch' })]), [undefined, undefined]);
      await Promise.all([send(page, 1), send(other, 2)]);
      await Promise.all([close(page), close(other)]);
      const sessions = openings();
      assert.equal(sessions.length, 3);
      assert.equal(new Set(sessions.map(({ session }) => session)).size, 3);
      claims();
    } finally {
      await first.close();
      await copy?.close();
      await Promise.all([original.remove(), restored.remove()]);
    }
  });
});

// What a live stream says and keeps when the platform, the clock, the service or its caller misbehaves.
import './support/globals.js';
import assert from 'node:assert/strict';
import { KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { readDevice, schemaFromYaml, Stream } from 'alpheus';
import { parseTickFrame, Producer, rowOf, StreamKeys } from 'alpheus/protocol';
import { deviceFiles, SCHEMA } from './support/device.js';
import { scripted } from './support/scripted.js';

const schema = schemaFromYaml(SCHEMA);
const device = await readDevice(deviceFiles, schema);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const until = async (holds) => {
  while (!holds()) await pause(20);
};
const open = (transport, more = {}) => Stream.open({ schema, device, transport, ...more });
const parsed = (upload) => upload.frames.map((frame) => parseTickFrame(frame, schema.tick));
const sent = ({ asked }) => asked.uploads.flatMap(parsed).map(({ opening, claim }) => (opening ? 'opening' : claim.kind));

// Clocks that a test sets.
function settable() {
  const clock = { set: 0, now: () => Math.floor((Date.now() + clock.set) * 1000), steady: () => Math.floor(performance.now() * 1000) };
  return clock;
}

test('a platform that fails once does not stop the stream', async () => {
  let failures = 1;
  const key = { sign: (label, message) => (failures-- > 0 ? Promise.reject(new Error('a hiccup')) : device.identity.key.sign(label, message)) };
  const stream = await open(scripted(), { device: { ...device, identity: { ...device.identity, key } } });
  assert.equal(failures, -1);
  await stream.add({ reading: 1 });
  await stream.flush();
  stream.abandon();
});

test('nor one that fails to derive the key of a day', async () => {
  const { deriveBits } = crypto.subtle;
  const setup = { master: device.master, stream: device.stream, schema: device.schema, tick: 1_000_000, words: 3, random: (out) => crypto.getRandomValues(out) };
  const producer = await Producer.of(setup);
  crypto.subtle.deriveBits = () => Promise.reject(new Error('a hiccup'));
  try {
    await assert.rejects(producer.open({ now: 0 }, 0, () => {}), { message: 'a hiccup' });
  } finally {
    crypto.subtle.deriveBits = deriveBits;
  }
  const session = await producer.open({ now: 0 }, 0, () => {});
  session.abandon();
});

for (const [number, reason] of [[4, 'late'], [5, 'bad-mac'], [6, 'conflicting-frame']]) {
  test(`events of a frame that the service refuses (${reason}) are lost, and flush says so`, async () => {
    let refusals = 1;
    const service = scripted((upload) => {
      const tick = parsed(upload).find(({ claim }) => claim.kind === 1);
      return tick !== undefined && refusals-- > 0 ? { refused: [[tick.claim.session, number]] } : {};
    });
    const stream = await open(service);
    await stream.add({ reading: 1 });
    await assert.rejects(stream.flush(), { code: 'Lost' });
    assert.deepEqual([stream.status.events, stream.status.lost, stream.status.refusals], [1, 1, [reason]]);
    await stream.add({ reading: 2 });
    await stream.flush();
    assert.deepEqual([stream.status.events, stream.status.lost], [2, 1]);
    stream.abandon();
  });
}

test('so are those of a closing frame, and close says so', async () => {
  const service = scripted((upload) => {
    const last = parsed(upload).find(({ claim }) => claim.kind === 3);
    return last === undefined ? {} : { refused: [[last.claim.session, 0]] };
  });
  const stream = await open(service);
  await stream.add({ reading: 1 });
  await assert.rejects(stream.close(), { code: 'Lost' });
  assert.deepEqual([stream.status.events, stream.status.lost], [1, 1]);
});

test('a reason that this version does not know is shown as a short name', async () => {
  const service = scripted((upload, asked) => (asked.uploads.length === 2 ? { refused: [[0n, 7, '<b>too many gaps</b>']] } : {}));
  const stream = await open(service);
  await until(() => stream.status.refusals.length > 0);
  assert.deepEqual(stream.status.refusals, ['btoomanygapsb']);
  stream.abandon();
});

test('a clock that leaps over a day does not lose the tick that was complete', async () => {
  const clock = settable();
  const service = scripted();
  const stream = await open(service, { clock });
  await stream.add({ reading: 5 });
  clock.set = 25 * 3_600_000;
  await until(() => stream.status.sessions === 2);
  await stream.flush();
  // On a slow machine more ticks than the one with the event may have been complete.
  const kinds = sent(service);
  const session = kinds.slice(0, kinds.indexOf('opening', 1));
  assert.ok(session.length >= 2 && session.slice(1).includes(1) && session.every((kind) => ['opening', 1, 2].includes(kind)), kinds.join());
  assert.deepEqual([stream.status.events, stream.status.lost], [1, 0]);
  stream.abandon();
});

test('close delivers the frames that wait while a session is opening', async () => {
  const clock = settable();
  let offline = false;
  const service = scripted(() => ({ fails: offline }));
  const stream = await open(service, { clock });
  offline = true;
  await stream.add({ reading: 5 });
  await until(() => stream.status.waiting >= 2);
  // Between ticks, so that the next session takes a while to open.
  clock.set = -60_400;
  await until(() => stream.status.state === 'opening');
  assert.equal(stream.status.lost, 0);
  offline = false;
  await stream.close(20_000);
  assert.deepEqual([stream.status.waiting, stream.status.events, stream.status.lost], [0, 1, 0]);
});

test('and says what it could not deliver', async () => {
  const clock = settable();
  let offline = false;
  const stream = await open(scripted(() => ({ fails: offline })), { clock });
  offline = true;
  await stream.add({ reading: 5 });
  await until(() => stream.status.waiting >= 2);
  // Between ticks, so that the next session takes a while to open.
  clock.set = -60_400;
  await until(() => stream.status.state === 'opening');
  await assert.rejects(stream.close(100), { code: 'Lost' });
  assert.equal(stream.status.lost, 1);
});

test('an event that waits is read and checked when it is added', async () => {
  const clock = settable();
  const stream = await open(scripted(), { clock });
  const rows = [];
  const { encoder } = stream;
  stream.encoder = { encode: (row, ...more) => (rows.push(row[0]), encoder.encode(row, ...more)) };
  clock.set = -5000;
  const event = {};
  const added = [1, 2, 3].map((value) => stream.add(Object.assign(event, { reading: value })));
  assert.equal(stream.status.state, 'opening');
  await assert.rejects(stream.add({ reading: 1001 }), { code: 'OutOfBounds' });
  await assert.rejects(stream.add({}), { code: 'Missing' });
  assert.equal(stream.status.state, 'opening');
  await Promise.all(added);
  assert.deepEqual(rows, [1, 2, 3]);
  stream.abandon();
});

for (const status of [302, 401, 403, 404, 413]) {
  test(`a refusal on the way (${status}) is reported, and the stream goes on`, async () => {
    let refusals = 2;
    const reported = [];
    const service = scripted((upload) => (upload.number === 2 && refusals-- > 0 ? { status, says: '<h1>log in</h1>' } : {}));
    const stream = await open(service, { onRefused: (status) => reported.push(status) });
    await stream.add({ reading: 1 });
    await stream.flush();
    assert.deepEqual([reported, stream.status.state, stream.status.lost], [[status, status], 'open', 0]);
    stream.abandon();
  });
}

test('a device of another schema opens no stream', async () => {
  const other = schemaFromYaml(SCHEMA.replace('tick: 1s', 'version: 2\ntick: 1s'));
  await assert.rejects(open(scripted(), { schema: other }), { code: 'OtherSchema' });
});

test('a handler that throws changes nothing', async () => {
  const { error } = console;
  let reported = 0;
  console.error = () => reported++;
  let stream;
  try {
    stream = await open(scripted(), { onStatus: () => { throw new Error('a bug in the page'); } });
    await stream.add({ reading: 1 });
    await stream.flush();
    await stream.close();
  } finally {
    console.error = error;
  }
  assert.ok(reported > 0);
  assert.deepEqual([stream.status.sessions, stream.status.events, stream.status.lost], [1, 1, 0]);
});

test('a service that always has another state is asked again only after a pause', async () => {
  const service = scripted(() => ({ became: [1, 99] }));
  const stream = await open(service);
  const { setTimeout: real } = globalThis;
  let pauses = 0;
  globalThis.setTimeout = (act, time, ...more) => {
    pauses++;
    return real(act, time, ...more);
  };
  try {
    await until(() => service.asked.uploads.length >= 3);
  } finally {
    globalThis.setTimeout = real;
  }
  stream.abandon();
  assert.ok(pauses >= 2);
});

test('an attribute is given once', () => {
  for (const event of [{ reading: 1, READING: 2 }, { Reading: undefined, reading: 2 }]) {
    assert.throws(() => rowOf(schema, event), { code: 'Twice', attribute: 'reading' });
  }
});

test('in Node no handle that cannot be exported is made a key object, which later versions refuse', async () => {
  const { from } = KeyObject;
  KeyObject.from = () => {
    throw new TypeError('the key cannot be exported');
  };
  try {
    const keys = await StreamKeys.of(device.master, device.stream, device.schema);
    await keys.keyVector(1n, 1_000_000, 8);
    await keys.countPad(1n, 1_000_000);
  } finally {
    KeyObject.from = from;
  }
});

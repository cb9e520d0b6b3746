// A live stream and a service that fails, forgets and refuses.
import './support/globals.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDevice, schemaFromYaml, Stream, StreamError } from 'alpheus';
import { blocksOf, layoutOf, parseTickFrame, TickProducer, toHex } from 'alpheus/protocol';
import { deviceFiles, SCHEMA } from './support/device.js';
import { scripted } from './support/scripted.js';

const schema = schemaFromYaml(SCHEMA);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function open(transport, more = {}) {
  return Stream.open({ schema, device: await readDevice(deviceFiles, schema), transport, ...more });
}

const frames = (uploads) => uploads.flatMap((upload) => upload.frames.map(toHex));

test('what does not arrive is sent again, the same under the same number', async () => {
  let failures = 3;
  const service = scripted(() => (failures-- > 0 ? { fails: true } : {}));
  const stream = await open(service);
  await stream.add({ reading: 5 });
  await stream.flush();
  await stream.close();
  const { uploads } = service.asked;
  for (const upload of uploads.slice(1, 4)) assert.deepEqual(upload, uploads[0]);
  assert.deepEqual(uploads.slice(3).map(({ number }) => number), uploads.slice(3).map((_, i) => i + 1));
  const arrived = frames(uploads.slice(3));
  assert.equal(new Set(arrived).size, arrived.length);
  assert.deepEqual([stream.status.events, stream.status.lost, stream.status.waiting], [1, 0, 0]);
});

test('a service that lost its state gets what waits under a new name', async () => {
  let forgot = false;
  const service = scripted((upload) => {
    if (upload.number === 2 && !forgot) {
      forgot = true;
      return { became: [2, 1] };
    }
    return {};
  });
  const stream = await open(service);
  await stream.flush();
  await stream.close();
  const [first, second, third] = service.asked.uploads;
  assert.equal(second.outbox, first.outbox);
  assert.notEqual(third.outbox, first.outbox);
  assert.equal(third.number, 1);
  assert.deepEqual(frames([third]).slice(0, second.frames.length), frames([second]));
});

test('a session that the service does not know is replaced, and the device introduces itself again', async () => {
  let refusals = 1;
  const service = scripted((upload) => {
    const tick = upload.frames.map((frame) => parseTickFrame(frame, schema.tick)).find(({ opening }) => !opening);
    return tick !== undefined && refusals-- > 0 ? { refused: [[tick.claim.session, 0]] } : {};
  });
  const stream = await open(service);
  const before = stream.status.session;
  await stream.add({ reading: 5 });
  while (stream.status.sessions < 2) await pause(50);
  assert.notEqual(stream.status.session, before);
  assert.deepEqual(stream.status.refusals, ['unknown-session']);
  await stream.add({ reading: 6 });
  await assert.rejects(stream.flush(), { code: 'Lost' });
  // Once reported, it is not reported again.
  await stream.add({ reading: 7 });
  await stream.flush();
  await stream.close();
  assert.deepEqual([stream.status.events, stream.status.lost], [3, 1]);
  assert.equal(service.asked.introductions, 2);
  const openings = service.asked.uploads.flatMap(({ frames }) => frames.map((frame) => parseTickFrame(frame, schema.tick))).filter(({ opening }) => opening);
  assert.equal(openings.length, 2);
  assert.equal(openings[1].previous.session, openings[0].claim.session);
});

test('a device that is refused for good says so', async () => {
  const service = scripted((upload) => (upload.number > 1 ? { status: 403 } : {}));
  const stream = await open(service);
  while (stream.status.state !== 'failed') await pause(20);
  const refused = await stream.add({ reading: 5 }).catch((error) => error);
  assert.ok(refused instanceof StreamError);
  assert.deepEqual([refused.code, refused.message.includes('role')], ['Refused', true]);
  await stream.close();
});

test('a stream that its owner has withdrawn sends nothing more', async () => {
  const service = scripted((upload) => (upload.number > 1 ? { became: [5] } : {}));
  const stream = await open(service);
  while (stream.status.state !== 'failed') await pause(20);
  const refused = await stream.add({ reading: 5 }).catch((error) => error);
  assert.ok(refused instanceof StreamError);
  assert.equal(refused.code, 'Withdrawn');
  assert.equal(service.asked.uploads.length, 2);
  await stream.close();
});

test('a stream that its service does not know yet waits', async () => {
  let refusals = 2;
  const stream = await open(scripted(() => (refusals-- > 0 ? { became: [3] } : {})));
  await stream.add({ reading: 5 });
  await stream.flush();
  await stream.close();
  assert.equal(stream.status.lost, 0);
});

test('events that were not delivered count as lost', async () => {
  const stream = await open(scripted(() => ({ fails: true })));
  await stream.add({ reading: 5 });
  await stream.add({ reading: 6 });
  await assert.rejects(stream.close(300), { code: 'Lost' });
  assert.deepEqual([stream.status.events, stream.status.lost, stream.status.reached], [2, 2, false]);
});

test('a stream is open once, and again after it was closed', async () => {
  const first = await open(scripted());
  await assert.rejects(open(scripted()), { code: 'InUse' });
  first.abandon();
  await assert.rejects(first.add({ reading: 1 }), { code: 'Closed' });
  const second = await open(scripted());
  second.abandon();
});

test('many events of one millisecond are all in their tick', async () => {
  const service = scripted();
  const stream = await open(service);
  await Promise.all(Array.from({ length: 3000 }, () => stream.add({ reading: 5 })));
  await stream.flush();
  stream.abandon();
  assert.deepEqual([stream.status.events, stream.status.lost], [3000, 0]);
});

test('a session ends with its day: the next opens first, under a number of its own', async () => {
  const day = 86_400_000_000;
  const device = await readDevice(deviceFiles, schema);
  const producer = await TickProducer.of({
    master: device.master, stream: device.stream, schema: device.schema, tick: schema.tick, anchor: 4_000_000,
    blocks: blocksOf(layoutOf(schema)), device: device.identity, random: (out) => crypto.getRandomValues(out),
  });
  const sent = [];
  const session = await producer.open('first', day - 2 * schema.tick, undefined, (frame) => sent.push(parseTickFrame(frame, schema.tick)));
  const { number } = session;
  await session.advance(day + schema.tick);
  assert.deepEqual(sent.map(({ claim }) => claim.kind), [0, 1, 0, 3, 1]);
  assert.deepEqual(sent.map(({ claim }) => claim.session === number), [true, true, false, true, false]);
  assert.deepEqual([sent[2].claim.to, sent[3].claim.to], [day, day]);
  assert.deepEqual(sent[2].previous, { session: number, last: day });
  await session.sleepUntil(2 * day + schema.tick);
  assert.deepEqual(sent.slice(5).map(({ claim }) => claim.kind), [0, 4, 2]);
});

test('calls that do not wait for each other use no border twice', async () => {
  const device = await readDevice(deviceFiles, schema);
  const producer = await TickProducer.of({
    master: device.master, stream: device.stream, schema: device.schema, tick: schema.tick, anchor: 4_000_000,
    blocks: blocksOf(layoutOf(schema)), device: device.identity, random: (out) => crypto.getRandomValues(out),
  });
  const sent = [];
  const session = await producer.open('first', 0, undefined, (frame) => sent.push(parseTickFrame(frame, schema.tick).claim.to));
  await Promise.all([session.advance(3_000_000), session.advance(3_000_000), session.sleepUntil(6_000_000), session.advance(7_000_000)]);
  assert.deepEqual(sent, [0, 1_000_000, 2_000_000, 3_000_000, 6_000_000, 7_000_000]);
  session.event(7_000_001, () => {});
  session.abandon();
  assert.throws(() => session.event(7_000_002, () => {}), { code: 'Ended' });
  await producer.open({ now: 7_000_000 }, 8_000_000, undefined, () => {});
});

// No key shows in a text, in JSON, in an error or in what a debugger prints of an object.
import './support/globals.js';
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { AlpheusError, readDevice, schemaFromYaml, Stream } from 'alpheus';
import { fromHex, SealingKey, TickProducer, blocksOf, layoutOf, PostcardWriter } from 'alpheus/protocol';
import { deviceFiles, SCHEMA, SECRET, SEED } from './support/device.js';

const schema = schemaFromYaml(SCHEMA);

// Everything that code without the package's own methods can reach from an object.
function reach(root) {
  const found = new Set();
  const visit = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function') || found.has(value)) return;
    found.add(value);
    if (ArrayBuffer.isView(value)) return;
    for (const key of Reflect.ownKeys(value)) {
      const { value: inner } = Object.getOwnPropertyDescriptor(value, key);
      visit(inner);
    }
  };
  visit(root);
  return found;
}

function shows(root, secrets) {
  const texts = [String(root), inspect(root, { depth: 20, showHidden: true })];
  try {
    texts.push(JSON.stringify(root) ?? '');
  } catch {
    // It holds itself, as timers do.
  }
  for (const each of reach(root)) {
    if (ArrayBuffer.isView(each)) texts.push(Buffer.from(each.buffer, each.byteOffset, each.byteLength).toString('hex'));
  }
  const all = texts.join('\n').toLowerCase();
  const listed = (hex) => [...Buffer.from(hex, 'hex')].join(', ');
  return secrets.some((hex) => all.includes(hex) || all.includes(listed(hex)) || all.includes(listed(hex).replaceAll(', ', ',')));
}

test('the search finds secrets where they are', () => {
  for (const plain of [{ a: { b: fromHex(SECRET) } }, { text: SECRET }, [...Buffer.from(SECRET, 'hex')]]) assert.ok(shows(plain, [SECRET]));
});

test('a device shows neither the stream’s secret nor its own key', async () => {
  const device = await readDevice(deviceFiles, schema);
  assert.equal(shows(device, [SECRET, SEED]), false);
  for (const handle of [device.master.handle, device.identity.key.handle]) assert.equal(handle.extractable, false);
  assert.equal(shows(await SealingKey.fromSeed(fromHex(SEED)), [SEED]), false);
});

test('neither does a session, nor the sum of its open tick', async () => {
  const device = await readDevice(deviceFiles, schema);
  const setup = { master: device.master, stream: device.stream, schema: device.schema, tick: schema.tick, anchor: 4_000_000 };
  const drawn = [];
  const random = (out) => {
    crypto.getRandomValues(out);
    if (out.length === 32) drawn.push(Buffer.from(out).toString('hex'));
  };
  const producer = await TickProducer.of({ ...setup, blocks: blocksOf(layoutOf(schema)), device: device.identity, random });
  const session = await producer.open('first', 0, undefined, () => {});
  session.event(5, (vector) => { vector[0] = 0x5ec2e7; });
  await session.advance(1_000_000);
  session.event(1_000_005, (vector) => { vector[0] = 0x5ec2e7; });
  assert.ok(drawn.length >= 1, 'the session’s key was drawn');
  // e7c25e00: the sum's first word, little-endian.
  assert.equal(shows(session, [SECRET, SEED, ...drawn, 'e7c25e0000000000']), false);
  session.abandon();
});

test('nor a live stream', async () => {
  const device = await readDevice(deviceFiles, schema);
  const answer = new PostcardWriter().number(1).number(0).number(0).bytes();
  const transport = { post: async () => ({ status: 200, body: answer }) };
  const stream = await Stream.open({ schema, device, transport });
  // It waits for a session: its value is one that no time, number or key shows by chance.
  const added = stream.add({ reading: 773.25 });
  assert.ok(!inspect(stream, { depth: 20, showHidden: true }).includes('773.25'), 'a waiting value shows');
  await added;
  assert.equal(shows(stream, [SECRET, SEED]), false);
  assert.equal(shows(stream.status, [SECRET, SEED]), false);
  stream.abandon();
});

test('errors name rules and never quote what they are about', async () => {
  const bad = [
    { ...deviceFiles, device: deviceFiles.device.slice(1) },
    { ...deviceFiles, device: deviceFiles.device.replace('"version"', '"v"') },
    { ...deviceFiles, device: deviceFiles.device.replace('"version":1', '"version":2') },
    { ...deviceFiles, device: deviceFiles.device.replace(SECRET, `${SECRET.slice(2)}zz`) },
    { ...deviceFiles, device: deviceFiles.device.replace(/"schema":"../, '"schema":"00') },
    { ...deviceFiles, identity: undefined },
    { ...deviceFiles, identity: { ...deviceFiles.identity, seed: `${SEED}00` } },
    { ...deviceFiles, identity: { ...deviceFiles.identity, seed: SECRET } },
    { ...deviceFiles, identity: { ...deviceFiles.identity, certificate: SEED } },
    { ...deviceFiles, identity: { ...deviceFiles.identity, deployment: `{"authority": "${SEED}"` } },
  ];
  const codes = [];
  for (const files of bad) {
    const refused = await readDevice(files, schema).then(() => undefined, (error) => error);
    assert.ok(refused instanceof AlpheusError, inspect(files));
    codes.push(refused.code);
    const said = `${refused.stack}${inspect(refused, { depth: 20 })}${JSON.stringify(refused)}`;
    for (const secret of [SECRET, SEED, SECRET.slice(0, 16), SEED.slice(0, 16)]) assert.ok(!said.includes(secret), said);
  }
  assert.deepEqual(codes, [
    'NotADeviceFile', 'NotADeviceFile', 'OtherFormat', 'BadSecret', 'OtherSchema', 'NoIdentity', 'NotASeed', 'OtherSeed',
    'NotACertificate', 'NotADeployment',
  ]);
});

test('an event that is refused is not in the error', async () => {
  const device = await readDevice(deviceFiles, schema);
  const stream = await Stream.open({ schema, device, transport: { post: () => new Promise(() => {}) } });
  for (const [event, code] of [
    [{ reading: 31337 }, 'OutOfBounds'], [{ reading: 31337n ** 9n }, 'OutOfBounds'], [{ reading: '31337x' }, 'WrongType'],
    [{ reading: true }, 'WrongType'], [{}, 'Missing'], [{ reading: 1, 31337: 1 }, 'Unknown'], [{ reading: Number.NaN }, 'WrongType'],
  ]) {
    const refused = await stream.add(event).then(() => undefined, (error) => error);
    assert.equal(refused.code, code);
    assert.ok(!inspect(refused).includes('31337'), inspect(refused));
  }
  assert.equal(stream.status.events, 0);
  stream.abandon();
});

test('the published code has no source maps', async () => {
  for (const file of await readdir(new URL('../dist/', import.meta.url), { recursive: true })) {
    assert.ok(!file.endsWith('.map'), file);
    if (file.endsWith('.js')) assert.ok(!(await readFile(new URL(`../dist/${file}`, import.meta.url), 'utf8')).includes('sourceMappingURL'));
  }
});

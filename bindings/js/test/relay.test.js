// A relay, and strangers who send it what they like.
import './support/globals.js';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { createRelay } from 'alpheus/node';
import { PostcardWriter } from 'alpheus/protocol';
import { scripted } from './support/scripted.js';

const STREAM = 'ab'.repeat(16);
const TYPE = 'application/octet-stream';

// A body with one upload of a stream, with these frames.
function upload(frames = [new Uint8Array(30)], first = 0xab) {
  const out = new PostcardWriter().number(1).raw(new Uint8Array(16).fill(first)).raw(new Uint8Array(16)).number(1);
  return out.list(frames, (frame) => out.sized(frame)).bytes();
}

// A site with a relay for one user, eve. A handler that rejects fails the test.
async function withRelay(use, more = {}) {
  const service = scripted();
  const failures = [];
  const authorize = async (request) => {
    if (request.headers['x-user'] === 'broken') throw new Error('a database at 10.0.0.7');
    return request.headers['x-user'] === 'eve' ? { service, streams: [STREAM] } : undefined;
  };
  const relay = createRelay({ prefix: '/alpheus', origins: ['https://page.example'], headers: ['x-user'], authorize, ...more });
  const site = createServer((request, response) => {
    relay(request, response).then((own) => own || response.writeHead(404).end(), (failed) => failures.push(failed));
  });
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
  const { port } = site.address();
  const ask = (path, { headers, ...options } = {}) => fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST', body: new Uint8Array([0]), headers: { 'content-type': TYPE, ...headers }, ...options,
  });
  // Sends a text, and gives the answer once the connection has ended, or once it ends it.
  const raw = (text, end = false) => new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text, () => end && socket.destroy()));
    socket.on('data', (chunk) => (answer += chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
  try {
    await use({ ask, raw, service, site });
  } finally {
    site.closeAllConnections();
    site.close();
  }
  assert.deepEqual(failures, []);
}

const as = (user, headers = {}) => ({ headers: { 'x-user': user, ...headers } });

test('a relay forwards for whom it is asked to, and says nothing of why it cannot', () => withRelay(async ({ ask }) => {
  const page = { origin: 'https://page.example' };
  const good = await ask('/alpheus/v1/events?x', { ...as('eve', page), body: upload() });
  assert.deepEqual([good.status, good.headers.get('access-control-allow-origin')], [200, 'https://page.example']);
  assert.equal(good.headers.get('access-control-allow-headers'), 'content-type, authorization, x-user');
  const statuses = [
    await ask('/alpheus/v1/events', { ...as('eve'), body: upload(undefined, 0xaa) }), await ask('/alpheus/v1/device', as('mallory')),
    await ask('/alpheus/v1/events', { ...as('eve'), body: upload().slice(1) }), await ask('/alpheus/v1/status', as('eve')),
    await ask('/alpheus/v1/events', { ...as('eve'), body: new Uint8Array((1 << 20) + 1) }), await ask('/alpheus/v1/events', { method: 'GET', body: undefined }),
  ].map(({ status }) => status);
  assert.deepEqual(statuses, [403, 403, 400, 404, 413, 405]);
  const broken = await ask('/alpheus/v1/events', { ...as('broken'), body: upload() });
  assert.deepEqual([broken.status, await broken.text()], [502, '']);
}));

test('an address that is none, and a client that goes away, end nothing', () => withRelay(async ({ ask, raw }) => {
  const head = `POST /alpheus/v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: ${TYPE}\r\nX-User: eve\r\nContent-Length: 100\r\n\r\nabc`;
  assert.match(await raw('GET // HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), /^HTTP\/1.1 404 /);
  await raw(head, true);
  assert.equal((await ask('/alpheus/v1/device', as('eve'))).status, 200);
}));

test('who is refused is refused before the body is read', () => withRelay(async ({ raw }) => {
  // The body never comes.
  const head = `POST /alpheus/v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: ${TYPE}\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n`;
  assert.match(await raw(head), /^HTTP\/1.1 403 /);
}));

test('a body that does not come ends its connection', () => withRelay(async ({ raw, service }) => {
  const head = `POST /alpheus/v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: ${TYPE}\r\nX-User: eve\r\nContent-Length: 1000\r\n\r\n`;
  await raw(head);
  assert.equal(service.asked.uploads.length, 0);
}, { patience: 50 }));

test('a body of frames that are none, or of very many uploads, is refused', () => withRelay(async ({ ask, service }) => {
  const many = new PostcardWriter().number(65);
  for (let i = 0; i < 65; i++) many.raw(new Uint8Array(16).fill(0xab)).raw(new Uint8Array(16)).number(1).number(0);
  const empty = new Uint8Array((1 << 20) - 100);
  empty.set(new PostcardWriter().number(1).raw(new Uint8Array(32).fill(0xab)).number(1).number(empty.length - 40).bytes());
  for (const body of [many.bytes(), empty, upload([new Uint8Array(24)])]) {
    assert.equal((await ask('/alpheus/v1/events', { ...as('eve'), body })).status, 400);
  }
  assert.equal((await ask('/alpheus/v1/events', { ...as('eve'), body: upload([new Uint8Array(25)]) })).status, 200);
  assert.equal(service.asked.uploads.length, 1);
}));

test('a page of another site cannot send with its user’s cookies', () => withRelay(async ({ ask, raw, service }) => {
  const body = upload();
  for (const headers of [
    { 'content-type': 'text/plain' }, { origin: 'https://elsewhere.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' },
    { 'content-type': 'text/plain', origin: 'https://page.example' },
  ]) {
    const { status, headers: answered } = await ask('/alpheus/v1/events', { ...as('eve', headers), body });
    assert.ok(status === 403 || status === 415, JSON.stringify(headers));
    if (headers.origin !== 'https://page.example') assert.equal(answered.get('access-control-allow-origin'), null);
  }
  assert.equal(service.asked.uploads.length, 0);
  assert.match(await raw('OPTIONS /alpheus/v1/events HTTP/1.1\r\nHost: x\r\nOrigin: https://elsewhere.example\r\nConnection: close\r\n\r\n'), /^HTTP\/1.1 403 /);
  // Its own page may, and a page that was named.
  const own = `POST /alpheus/v1/device HTTP/1.1\r\nHost: own.example\r\nOrigin: https://own.example\r\nContent-Type: ${TYPE}\r\nX-User: eve\r\nConnection: close\r\nContent-Length: 1\r\n\r\n0`;
  assert.match(await raw(own), /^HTTP\/1.1 200 /);
  assert.equal((await ask('/alpheus/v1/events', { ...as('eve', { origin: 'https://page.example', 'sec-fetch-site': 'cross-site' }), body })).status, 200);
}));

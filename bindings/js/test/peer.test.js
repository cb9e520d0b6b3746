// A device asks the service alone: a peer of the same authority with another role is refused.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { mutualTls } from 'alpheus/node';
import { BINARY, hasBinary } from './support/service.js';

const noBinary = !hasBinary && 'the program is not built: cargo build --package alpheus';
// All others whose certificates are good for a listener.
const OTHERS = ['controller', 'issuer', 'verifier', 'gateway', 'board', 'registrar', 'smoother', 'aggregator'];

// A peer with the certificate of a folder; it counts the requests that reach it.
async function listen(folder) {
  const read = (name) => readFile(join(folder, name));
  const tls = { cert: await read('tls.pem'), key: await read('tls.key'), ca: await read('ca.pem'), requestCert: true };
  const peer = { requests: 0 };
  const server = createServer(tls, (_, response) => {
    peer.requests += 1;
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  peer.url = `https://127.0.0.1:${server.address().port}`;
  peer.stop = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return peer;
}

test('another role’s certificate at the service’s address is refused', { skip: noBinary }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'alpheus-peer-'));
  const ca = (...args) => promisify(execFile)(BINARY, ['ca', ...args], { cwd: folder });
  const ask = async (role) => {
    await ca('issue', 'pki', '--role', role, '--name', `a-${role}`);
    const peer = await listen(join(folder, 'pki', `a-${role}`));
    const transport = mutualTls({ server: peer.url, identity: join(folder, 'pki', 'device') });
    try {
      const answer = await transport.post('/v1/events', new Uint8Array(1), AbortSignal.timeout(60_000)).catch((error) => error);
      return { answer, requests: peer.requests };
    } finally {
      transport.close();
      await peer.stop();
    }
  };
  try {
    await ca('init', 'pki');
    await ca('issue', 'pki', '--role', 'producer', '--name', 'device');
    const { answer, requests } = await ask('server');
    assert.deepEqual([answer.status, requests], [200, 1]);
    for (const role of OTHERS) {
      const { answer, requests } = await ask(role);
      assert.deepEqual([answer.code, requests], ['NotTheService', 0], role);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

// A site on loopback: pages under a strict policy, the package as a bundle, the vectors, and a relay.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { PostcardReader, PostcardWriter } from 'alpheus/protocol';
import { bundled } from './bundle.js';

// No inline script, no eval, no WebAssembly, nothing from elsewhere. Only the test's registration of a worker makes a
// trusted URL; the package makes none.
export const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types worker";
const VECTORS = new URL('../../../../vectors/', import.meta.url);

const MODULE = `
import * as alpheus from 'alpheus';
import * as protocol from 'alpheus/protocol';
import { conformance } from './test/support/conformance.js';
globalThis.alpheus = alpheus;
globalThis.protocol = protocol;
globalThis.conformance = conformance;
globalThis.violations = [];
globalThis.workerUrl = () => trustedTypes.createPolicy('worker', { createScriptURL: (url) => url }).createScriptURL('/worker.js');
addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(event.violatedDirective + ' ' + event.blockedURI));
`;

// A service worker that sends when it is asked to.
const WORKER = `
import { fetchTransport, readDevice, schemaFromYaml, Stream } from 'alpheus';
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('message', (event) => event.waitUntil((async () => {
  try {
    const { yaml, files, value, seconds } = event.data;
    const schema = schemaFromYaml(yaml);
    const stream = await Stream.open({
      schema, device: await readDevice(files, schema), transport: fetchTransport({ url: location.origin + '/alpheus', headers: { 'x-device': 'worker' } }),
    });
    for (let second = 0; second < seconds; second++) {
      await new Promise((resolve) => setTimeout(resolve, Math.ceil(Date.now() / 1000) * 1000 - Date.now() + 200));
      await stream.add({ reading: value, share: 0.25 });
    }
    await stream.flush();
    await stream.close();
    event.source.postMessage({ status: stream.status });
  } catch (failed) {
    event.source.postMessage({ failed: String(failed) });
  }
})()));
`;

// Starts it. `relay` answers requests below /alpheus.
export async function startSite(relay) {
  const scripts = { '/page.js': await bundled(MODULE), '/worker.js': await bundled(WORKER) };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://site');
    const send = (type, body) => {
      response.setHeader('content-type', type);
      response.setHeader('content-security-policy', POLICY);
      response.end(body);
    };
    try {
      if (pathname.startsWith('/alpheus/')) await relay(request, response);
      else if (pathname in scripts) send('text/javascript', scripts[pathname]);
      else if (pathname === '/') send('text/html', '<!doctype html><title>t</title><script type="module" src="/page.js"></script>');
      else if (pathname.startsWith('/repository/')) send('text/plain', await readFile(new URL(`../${pathname.slice(12)}`, VECTORS)));
      else {
        response.writeHead(404);
        response.end();
      }
    } catch (failed) {
      response.writeHead(500);
      response.end(String(failed));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://localhost:${server.address().port}`;
  return { url, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

// Stands in for the service: takes every upload, and keeps the frames in the order in which they came.
export function recorder() {
  const frames = [];
  const relay = async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const reply = new PostcardWriter();
    if (request.url.endsWith('/v1/events')) {
      const reader = new PostcardReader(new Uint8Array(Buffer.concat(chunks)));
      const uploads = reader.list(() => {
        reader.raw(32);
        reader.number();
        return reader.list(() => reader.sized());
      });
      frames.push(...uploads.flat());
      reply.list(uploads, () => reply.number(0)).number(0);
    }
    response.end(Buffer.from(reply.bytes()));
  };
  return { frames, relay };
}

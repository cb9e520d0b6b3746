// Vite builds an application with the package, and the built page sends. Its libraries are in test/vite, for `make js-long`.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createRelay, mutualTls, readDeviceFiles } from 'alpheus/node';
import { hasChromium, launch } from './support/browser.js';
import { hasBinary, startService } from './support/service.js';
import { POLICY } from './support/site.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VITE = new URL('./vite/node_modules/vite/dist/node/index.js', import.meta.url);
const MAIN = `
import { fetchTransport, readDevice, schemaFromYaml, Stream } from 'alpheus';
const { yaml, files } = await (await fetch('/given.json')).json();
const schema = schemaFromYaml(yaml);
const stream = await Stream.open({ schema, device: await readDevice(files, schema), transport: fetchTransport({ url: '/alpheus' }) });
for (let second = 0; second < 10; second++) {
  await new Promise((resolve) => setTimeout(resolve, Math.ceil(Date.now() / 1000) * 1000 - Date.now() + 200));
  await stream.add({ reading: 9, share: 0.5 });
}
await stream.flush();
await stream.close();
document.title = JSON.stringify(stream.status);
`;

test('a page that Vite has built sends what a live service opens', { skip: (!hasBinary && 'the program is not built') || (!hasChromium && 'there is no Chromium') }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'alpheus-vite-'));
  const service = await startService(['page']);
  const transport = mutualTls({ server: service.url, identity: service.path('pki/page') });
  const relay = createRelay({ prefix: '/alpheus', authorize: async () => ({ service: transport, streams: [service.streams.page] }) });
  let browser;
  let server;
  try {
    await writeFile(join(folder, 'package.json'), '{"name": "app", "private": true, "type": "module"}');
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>new</title><script type="module" src="/main.js"></script>');
    await writeFile(join(folder, 'main.js'), MAIN);
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await symlink(ROOT, join(ROOT, 'node_modules/alpheus')).catch(() => {});
    const vite = await import(VITE);
    await vite.build({ root: folder, logLevel: 'warn', build: { target: 'es2022' } });
    const given = JSON.stringify({ yaml: service.schema, files: await readDeviceFiles(service.path('page.device'), service.path('pki/page')) });
    const assets = await readdir(join(folder, 'dist/assets'));
    server = createServer(async (request, response) => {
      if (await relay(request, response)) return;
      response.setHeader('content-security-policy', POLICY);
      const asset = assets.find((name) => request.url === `/assets/${name}`);
      if (request.url === '/given.json') response.end(given);
      else if (asset !== undefined) {
        response.setHeader('content-type', 'text/javascript');
        response.end(await readFile(join(folder, 'dist/assets', asset)));
      } else {
        response.setHeader('content-type', 'text/html');
        response.end(await readFile(join(folder, 'dist/index.html')));
      }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    browser = await launch();
    const page = await browser.newPage();
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => document.title !== 'new', undefined, { timeout: 120_000 });
    const status = JSON.parse(await page.title());
    assert.deepEqual([status.events, status.lost, status.refusals], [10, 0, []]);
    const row = await service.until('whole window', (rows) => rows.find((each) => each.population === 1 && each.count_reading === 2));
    assert.deepEqual([row.status, row.sum_reading, row.sum_share], ['ok', '18', '1.00']);
  } finally {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
    transport.close();
    await service.stop();
    await rm(join(ROOT, 'node_modules/alpheus'), { force: true });
    await rm(folder, { recursive: true, force: true });
  }
});

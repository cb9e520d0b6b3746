// The README's code, in a project of its own that has installed what is published.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { hasChromium, launch } from './support/browser.js';
import { freePort, hasBinary, startService } from './support/service.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const readme = await readFile(join(ROOT, 'README.md'), 'utf8');

// Blocks by the file's name in their first line.
const blocks = Object.fromEntries([...readme.matchAll(/```js\n\/\/ (\S+)\n([^]*?)```/g)].map(([, name, code]) => [name, code]));

test('it has the code of all three', () => assert.deepEqual(Object.keys(blocks), ['node.mjs', 'relay.mjs', 'page.mjs']));

// A project that has installed the tarball: by npm itself if LONG is set, else with libraries from here, without a registry.
async function project() {
  const folder = await mkdtemp(join(tmpdir(), 'alpheus-project-'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: ROOT });
  const [{ filename, files }] = JSON.parse(stdout);
  await writeFile(join(folder, 'package.json'), '{"name": "clean", "private": true, "type": "module"}');
  const made = { folder, files: files.map(({ path }) => path), remove: () => rm(folder, { recursive: true, force: true }) };
  if (process.env.LONG) {
    await run('npm', ['install', '--no-audit', '--no-fund', `./${filename}`], { cwd: folder });
    return made;
  }
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  await run('mkdir', ['-p', 'node_modules/alpheus'], { cwd: folder });
  await run('tar', ['-xzf', filename, '-C', 'node_modules/alpheus', '--strip-components=1'], { cwd: folder });
  for (const name of Object.keys(dependencies)) {
    await cp(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true });
  }
  return made;
}

test('its code runs in a clean project', { skip: (!hasBinary && 'the program is not built') || (!hasChromium && 'there is no Chromium') }, async () => {
  const clean = await project();
  const service = await startService(['watch', 'phone']);
  let relay;
  let browser;
  try {
    for (const file of clean.files) assert.ok(/^(dist\/.*\.(js|d\.ts)|README\.md|LICENSE|package\.json)$/.test(file), file);
    for (const name of ['schema.yaml', 'watch.device', 'phone.device', 'pki']) await symlink(service.path(name), join(clean.folder, name));
    const port = await freePort();
    for (const [name, code] of Object.entries(blocks)) {
      await writeFile(join(clean.folder, name), code.replaceAll('https://localhost:7400', service.url).replace('listen(8080)', `listen(${port})`));
    }
    // Types are there, for a program that uses them.
    await writeFile(join(clean.folder, 'types.ts'), `import { Stream, type StreamStatus } from 'alpheus'; import { mutualTls } from 'alpheus/node';
      export const use = (stream: Stream): StreamStatus => stream.status; export { mutualTls };`);
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom,dom.iterable'];
    await run(process.execPath, [tsc, ...strict, '--typeRoots', join(ROOT, 'node_modules/@types'), 'types.ts'], { cwd: clean.folder });

    const inNode = run(process.execPath, ['node.mjs'], { cwd: clean.folder });
    // The relay has what it needs for TLS, and no key of the device or its stream.
    await mkdir(join(clean.folder, 'eve'));
    for (const name of ['tls.pem', 'tls.key', 'ca.pem']) await copyFile(service.path(`pki/phone/${name}`), join(clean.folder, 'eve', name));
    const SESSIONS = JSON.stringify([['c0ffee', 'eve']]);
    const DEVICES = JSON.stringify([['eve', { streams: [service.streams.phone], folder: 'eve' }]]);
    relay = spawn(process.execPath, ['relay.mjs'], { cwd: clean.folder, env: { ...process.env, SESSIONS, DEVICES }, stdio: 'inherit' });
    const bundle = await build({ entryPoints: [join(clean.folder, 'page.mjs')], bundle: true, write: false, format: 'esm', platform: 'browser', target: 'es2022' });
    browser = await launch();
    const page = await browser.newPage();
    const site = `http://localhost:${port}`;
    const serve = (path, body, contentType) => page.route(site + path, (route) => route.fulfill({ body, contentType }));
    await page.context().addCookies([{ name: 'session', value: 'c0ffee', url: site }]);
    await serve('/', '<!doctype html><title>new</title><input type="file" multiple><script type="module" src="/bundle.js"></script>', 'text/html');
    await serve('/bundle.js', bundle.outputFiles[0].text, 'text/javascript');
    await serve('/schema.yaml', service.schema, 'text/plain');
    const chosen = [['watch.device', 'phone.device'], ...['deployment.json', 'device.txt', 'device.seed'].map((name) => [name, `pki/phone/${name}`])];
    const files = await Promise.all(chosen.map(async ([name, path]) => ({ name, mimeType: 'text/plain', buffer: await readFile(service.path(path)) })));
    // The second time it has its keys from the database.
    for (let visit = 0; visit < 2; visit++) {
      await page.goto(`${site}/`);
      // Chosen again until the page listens.
      const sent = page.waitForFunction(() => document.title === 'sent 1', undefined, { timeout: 120_000 });
      let done = visit > 0;
      sent.then(() => (done = true), () => (done = true));
      while (!done) {
        await page.setInputFiles('input', files);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      await sent;
    }
    const { stdout } = await inNode;
    assert.match(stdout, /state: 'closed'[^]*events: 1,[^]*lost: 0,/);
    const refused = await fetch(`${site}/alpheus/v1/device`, { method: 'POST', headers: { 'content-type': 'application/octet-stream', cookie: 'session=bad' }, body: new Uint8Array(3) });
    assert.equal(refused.status, 403);
  } finally {
    await browser?.close();
    relay?.kill();
    await service.stop();
    await clean.remove();
  }
});

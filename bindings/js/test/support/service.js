// A whole deployment as processes: a service, a controller, and an owner with a device for each name.
import { execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../../../target', import.meta.url));
export const BINARY = process.env.ALPHEUS_BINARY ?? join(TARGET, 'debug/alpheus');
// In continuous integration a test that cannot run fails.
export const hasBinary = existsSync(BINARY) || process.env.CI !== undefined;

export const SCHEMA = `\
name: Meters
version: 1
tick: 1s
anchor: 4s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [variance, {histogram: {lo: 0, width: 10, bins: 20}}] }
  - { name: share, type: decimal, scale: 2, min: -1, max: 1, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 2s, alpha: 0, dropout: 1/3 }
`;
const POLICIES = `\
schema: Meters
service: analyst
default:
  reading: { option: crowd, clients: 1 }
  share: { option: crowd, clients: 1 }
`;
const QUERY =
  'CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading), VAR(reading), SUM(share) ' +
  'WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters';

// 32 random bytes in base64, as guides make it: a key from a passphrase would cost more.
const KEY_FILE = 'EUCpfaD4b6RC92VxUTmSqcYVf36V7aQmGCjg7rwJc6I=';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A port that no connection draws, and hardly another test.
export async function freePort() {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const listens = await new Promise((resolve) => server.once('listening', () => resolve(true)).once('error', () => resolve(false)));
    if (!listens) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

// Starts a deployment whose devices have these names. `frames` is a line of the schema.
export async function startService(names, { frames = '' } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'alpheus-js-'));
  const processes = [];
  const schema = frames === '' ? SCHEMA : SCHEMA.replace('anchor: 4s', frames);
  const done = async (...args) => (await run(BINARY, args, { cwd: folder })).stdout.trim();
  const start = async (...args) => {
    // A window waits for a controller for as long as a busy machine may take.
    const env = args[0] === 'server' ? { ...process.env, ALPHEUS_WINDOWS__CONTROLLER_TIMEOUT_SECONDS: '60' } : process.env;
    const child = spawn(BINARY, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    processes.push(child);
    let said = '';
    const serving = new Promise((resolve, reject) => {
      const more = (chunk) => {
        said += chunk;
        if (/^serving at /m.test(said)) resolve();
      };
      child.stdout.on('data', more);
      child.stderr.on('data', more);
      child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}:\n${said}`)));
    });
    await serving;
    child.removeAllListeners('exit');
  };
  const service = {
    folder,
    schema,
    path: (name) => join(folder, name),
    async stop() {
      for (const child of processes) child.kill('SIGKILL');
      await Promise.all(processes.map((child) => child.exitCode === null && child.signalCode === null && new Promise((resolve) => child.once('exit', resolve))));
      await rm(folder, { recursive: true, force: true });
    },
    // Rows of the query so far.
    async rows() {
      const said = await done('query', '--server', service.url, '--identity', 'pki/analyst', '--results', 'Readings', '--format', 'json');
      return said.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
    },
    // Waits until rows satisfy a condition: what it returns.
    async until(what, found) {
      for (let tries = 0; tries < 300; tries++) {
        const rows = await service.rows().catch(() => []);
        const result = found(rows);
        if (result) return result;
        await pause(400);
      }
      throw new Error(`no ${what}: ${JSON.stringify(await service.rows())}`);
    },
  };
  try {
    await writeFile(join(folder, 'schema.yaml'), schema);
    await writeFile(join(folder, 'policies.yaml'), POLICIES);
    await writeFile(join(folder, 'key'), KEY_FILE);
    await chmod(join(folder, 'key'), 0o600);
    await done('ca', 'init', 'pki');
    const issue = (role, name) => done('ca', 'issue', 'pki', '--role', role, '--name', name);
    await issue('server', 'service');
    await issue('consumer', 'analyst');
    await issue('controller', 'host');
    await done('controller', 'init', '--identity', 'pki/host', '--state', 'run/host', '--key-file', 'key', '--ca', 'pki');
    const [api, own] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    service.url = `https://${api}`;
    await start('server', '--identity', 'pki/service', '--schema', 'schema.yaml', '--state', 'run/service', '--api', api, '--idle-timeout', '3');
    await start(
      'controller', 'run', '--identity', 'pki/host', '--state', 'run/host', '--key-file', 'key', '--schema', 'schema.yaml',
      '--server', service.url, '--api', own,
    );
    service.streams = {};
    for (const name of names) {
      await issue('owner', `owner-${name}`);
      await issue('producer', name);
      service.streams[name] = await done(
        'owner', 'add', '--identity', `pki/owner-${name}`, '--controller', `https://${own}`, '--schema', 'schema.yaml',
        '--policies', 'policies.yaml', '--producer', name, '--device', `${name}.device`,
      );
    }
    // The controller registers the streams.
    for (let tries = 0; ; tries++) {
      const asked = await done('query', '--server', service.url, '--identity', 'pki/analyst', '--query', `EXPLAIN ${QUERY} BETWEEN ${names.length} AND 100`).catch(() => undefined);
      if (asked !== undefined) break;
      if (tries > 200) throw new Error('the streams are not registered');
      await pause(200);
    }
    await done('query', '--server', service.url, '--identity', 'pki/analyst', '--query', QUERY);
    return service;
  } catch (failed) {
    await service.stop();
    throw failed;
  }
}

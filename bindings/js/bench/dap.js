// DAP's client with Prio3Histogram of ten bins: what a report costs. Its libraries are in bench/dap, for `make js-long`.
import { existsSync } from 'node:fs';
import { SealingKey } from 'alpheus/protocol';

const CLIENT = new URL('./dap/node_modules/@divviup/dap/dist/index.js', import.meta.url);
const VERSION = '0.9.1';
const ROUNDS = 61;
const TIMES = 5;

export async function besideDap() {
  if (!existsSync(CLIENT)) return undefined;
  const { Task } = await import(CLIENT);
  const task = new Task({
    type: 'histogram', length: 10, chunkLength: 4, id: Buffer.alloc(32, 1), leader: 'https://leader.example/', helper: 'https://helper.example/',
    timePrecisionSeconds: 10,
  });
  // One key configuration: X25519, HKDF-SHA256, AES-128-GCM.
  const { own } = await SealingKey.fromSeed(new Uint8Array(32).fill(7));
  const config = Buffer.concat([Buffer.from([1, 0, 0x20, 0, 1, 0, 1, 0, own.length]), own]);
  const list = Buffer.concat([Buffer.from([0, config.length]), config]);
  task.fetch = async () => new Response(list, { status: 200, headers: { 'content-type': 'application/dap-hpke-config-list' } });
  const found = [];
  let bytes = 0;
  for (let round = -2; round < ROUNDS; round++) {
    const start = performance.now();
    for (let i = 0; i < TIMES; i++) bytes = (await task.generateReport(i % 10)).encode().length;
    if (round >= 0) found.push(((performance.now() - start) * 1000) / TIMES);
  }
  found.sort((a, b) => a - b);
  return { version: VERSION, report: { least: found[0], median: found[ROUNDS >> 1] }, bytes };
}

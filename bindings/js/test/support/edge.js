// Runs a script as an edge runtime does: globals of the web alone, and no code from strings, by this context's rules
// and by the engine's own (`node --disallow-code-generation-from-strings edge.js SCRIPT`).
import './globals.js';
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const names = [
  'fetch', 'Headers', 'Request', 'Response', 'crypto', 'CryptoKey', 'performance', 'setTimeout', 'clearTimeout', 'TextEncoder',
  'TextDecoder', 'AbortController', 'AbortSignal', 'URL', 'Event', 'EventTarget', 'DOMException', 'console', 'queueMicrotask',
  // The context's own arrays would not be those of the platform's functions.
  'Uint8Array', 'Uint32Array', 'ArrayBuffer', 'DataView', 'Promise', 'Error', 'TypeError',
];
const given = JSON.parse(process.argv[3]);
const sandbox = Object.fromEntries(names.filter((name) => name in globalThis).map((name) => [name, globalThis[name]]));
const finished = new Promise((resolve) => { sandbox.finish = resolve; });
const context = vm.createContext({ ...sandbox, given }, { codeGeneration: { strings: false, wasm: false } });
vm.runInContext('try { eval("1"); finish({ failed: "code came from a string" }); } catch { }', context);
vm.runInContext(readFileSync(process.argv[2], 'utf8'), context);
console.log(JSON.stringify(await finished));

/**
 * SHA-256 (FIPS 180-4) of many short messages in a row, for Merkle trees. A library's hash sets up an object for each
 * message, which costs more than hashing 65 bytes, and the platform's hash is asynchronous, which costs more still. A tree
 * over a tick has two hundred of them. What it hashes is ciphertext; where secrets are hashed, the library does it.
 */
import type { Bytes } from '../bytes.js';

const WORDS = 64;
const BLOCK = 64;

/** Fractional parts of roots of primes: the constants of the standard. */
function constants(): { start: Int32Array; round: Int32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < WORDS; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  const root = (n: bigint, degree: bigint): number => {
    // ⌊n^(1/degree) · 2^32⌋ by bisection.
    const target = n << (32n * degree);
    let [low, high] = [0n, 1n << 40n];
    while (high - low > 1n) {
      const middle = (low + high) >> 1n;
      if (middle ** degree <= target) low = middle;
      else high = middle;
    }
    return Number(BigInt.asIntN(32, low));
  };
  const start = Int32Array.from(primes.slice(0, 8), (prime) => root(BigInt(prime), 2n));
  return { start, round: Int32Array.from(primes, (prime) => root(BigInt(prime), 3n)) };
}

const { start: START, round: ROUND } = constants();

/** Hashes messages one after the other, in memory that it keeps. */
export class TreeHash {
  private readonly state = new Int32Array(8);
  private readonly schedule = new Int32Array(WORDS);
  private readonly last = new Uint8Array(2 * BLOCK);

  /** Writes the digest of a message into `out` at an offset. */
  digest(message: Uint8Array, out: Uint8Array, at = 0): void {
    const { state, last } = this;
    state.set(START);
    const whole = message.length - (message.length % BLOCK);
    for (let i = 0; i < whole; i += BLOCK) this.block(message, i);
    const rest = message.length - whole;
    // Loops: for so few bytes, views and fills cost more than hashing them.
    for (let i = 0; i < rest; i++) last[i] = message[whole + i] as number;
    for (let i = rest; i < last.length; i++) last[i] = 0;
    last[rest] = 0x80;
    const length = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    // Messages are far below 2^29 bytes.
    const bits = message.length * 8;
    for (let i = 1; i <= 4; i++) last[length - i] = bits >>> (8 * (i - 1));
    for (let i = 0; i < length; i += BLOCK) this.block(last, i);
    for (let i = 0; i < 8; i++) {
      const word = state[i] as number;
      for (let byte = 0; byte < 4; byte++) out[at + 4 * i + byte] = word >>> (24 - 8 * byte);
    }
  }

  private block(from: Uint8Array, at: number): void {
    const { schedule: w, state } = this;
    const k = ROUND;
    for (let i = 0, j = at; i < 16; i++, j += 4) {
      w[i] =
        ((from[j] as number) << 24) | ((from[j + 1] as number) << 16) | ((from[j + 2] as number) << 8) | (from[j + 3] as number);
    }
    for (let i = 16; i < WORDS; i++) {
      const x = w[i - 15] as number;
      const y = w[i - 2] as number;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (((w[i - 16] as number) + s0) | 0) + (((w[i - 7] as number) + s1) | 0);
    }
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    let e = state[4] as number;
    let f = state[5] as number;
    let g = state[6] as number;
    let h = state[7] as number;
    for (let i = 0; i < WORDS; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      // Each sum of two is cut to 32 bits: longer ones would be computed in floating point.
      const t1 = ((((h + s1) | 0) + (g ^ (e & (f ^ g)))) | 0) + (((k[i] as number) + (w[i] as number)) | 0) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] = ((state[0] as number) + a) | 0;
    state[1] = ((state[1] as number) + b) | 0;
    state[2] = ((state[2] as number) + c) | 0;
    state[3] = ((state[3] as number) + d) | 0;
    state[4] = ((state[4] as number) + e) | 0;
    state[5] = ((state[5] as number) + f) | 0;
    state[6] = ((state[6] as number) + g) | 0;
    state[7] = ((state[7] as number) + h) | 0;
  }
}

const hash = new TreeHash();

/** The root of a Merkle tree (RFC 6962) over leaves that begin with a zero byte. */
export function rootOf(leaves: readonly Uint8Array[]): Bytes {
  const root = new Uint8Array(32);
  if (leaves.length === 0) {
    hash.digest(new Uint8Array(0), root);
    return root;
  }
  // Nodes of a level, 32 bytes each; a level's nodes take the place of those below.
  const nodes = new Uint8Array(32 * leaves.length);
  for (const [i, leaf] of leaves.entries()) hash.digest(leaf, nodes, 32 * i);
  const pair = new Uint8Array(65);
  pair[0] = 1;
  for (let size = leaves.length; size > 1; size = Math.ceil(size / 2)) {
    for (let i = 0; i < size; i += 2) {
      if (i + 1 < size) {
        for (let j = 0; j < 64; j++) pair[1 + j] = nodes[32 * i + j] as number;
        hash.digest(pair, nodes, 16 * i);
      } else {
        nodes.copyWithin(16 * i, 32 * i, 32 * i + 32);
      }
    }
  }
  root.set(nodes.subarray(0, 32));
  return root;
}

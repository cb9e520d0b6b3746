/**
 * Vectors of 64-bit words modulo 2^64, as pairs of 32-bit numbers, low half first: word i is at 2·i and 2·i + 1.
 * BigInts would allocate a number for each word. The same memory is the bytes on the wire.
 */
import type { Bytes } from '../bytes.js';

/** Words as pairs of 32-bit numbers. */
export type Words = Uint32Array<ArrayBuffer>;

if (new Uint8Array(Uint32Array.of(1).buffer)[0] !== 1) {
  // All platforms with a JavaScript engine that is still kept are little-endian.
  throw new Error('this machine is big-endian, which this package does not support');
}

/** A vector of zeros. */
export function zeros(words: number): Words {
  return new Uint32Array(2 * words);
}

/** The vector's memory, as it is on the wire. */
export function bytesOf(words: Words): Bytes {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** sum += addend. */
export function add(sum: Words, addend: Words): void {
  for (let i = 0; i < sum.length; i += 2) {
    const low = (sum[i] as number) + (addend[i] as number);
    sum[i] = low;
    sum[i + 1] = (sum[i + 1] as number) + (addend[i + 1] as number) + (low > 0xffff_ffff ? 1 : 0);
  }
}

/** out = plain + to − from, the ciphertext of a tick or event. */
export function encipher(out: Words, plain: Words, to: Words, from: Words): void {
  for (let i = 0; i < out.length; i += 2) {
    const low = (plain[i] as number) + (to[i] as number) - (from[i] as number);
    out[i] = low;
    out[i + 1] =
      (plain[i + 1] as number) + (to[i + 1] as number) - (from[i + 1] as number) + Math.floor(low / 0x1_0000_0000);
  }
}

/** Adds a number to one word. */
export function addTo(words: Words, word: number, low: number, high: number): void {
  const sum = (words[2 * word] as number) + low;
  words[2 * word] = sum;
  words[2 * word + 1] = (words[2 * word + 1] as number) + high + (sum > 0xffff_ffff ? 1 : 0);
}

/** A word as a number of 64 bits. */
export function wordAt(words: Words, word: number): bigint {
  return (BigInt(words[2 * word + 1] as number) << 32n) | BigInt(words[2 * word] as number);
}

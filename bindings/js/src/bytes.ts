/** Bytes, hexadecimal digits, and 64-bit numbers as JavaScript has them. */

/** Bytes with memory of their own, as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const text = new TextEncoder();

/** The UTF-8 bytes of a text. */
export function utf8(value: string): Bytes {
  return text.encode(value) as Bytes;
}

/** Hexadecimal digits, lower case. */
export function toHex(bytes: Uint8Array): string {
  let out = '';
  for (const byte of bytes) out += byte.toString(16).padStart(2, '0');
  return out;
}

/** Bytes of hexadecimal digits of either case; undefined if the text is anything else. */
export function fromHex(digits: string): Bytes | undefined {
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) return undefined;
  const out = new Uint8Array(digits.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return out;
}

/** One after the other. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Eight big-endian bytes of a number, modulo 2^64. */
export function u64(value: bigint | number): Bytes {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(value)));
  return out;
}

/** The 64-bit number in the first eight bytes. */
export function readU64(bytes: Uint8Array, littleEndian = false): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0, littleEndian);
}

/** Whether two arrays of one length are equal, in a time that does not depend on their content. */
export function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= (one[i] as number) ^ (other[i] as number);
  return difference === 0;
}

/** The Rust implementation's serialization, postcard 1.x: numbers in seven bits a byte, lengths before what they count. */
import { type Bytes, concat, utf8 } from './bytes.js';

/** Writes postcard. */
export class Writer {
  private buffer = new Uint8Array(256);
  private length = 0;

  /** What has been written. */
  bytes(): Bytes {
    return this.buffer.slice(0, this.length);
  }

  octet(value: number): this {
    return this.raw(Uint8Array.of(value));
  }

  bool(value: boolean): this {
    return this.octet(value ? 1 : 0);
  }

  /** An unsigned number of up to 64 bits, or the number of an enumeration's variant. */
  number(value: bigint | number): this {
    const out: number[] = [];
    let rest = BigInt(value);
    while (rest > 0x7fn) {
      out.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    out.push(Number(rest));
    return this.raw(Uint8Array.from(out));
  }

  signed(value: bigint): this {
    return this.number(value < 0n ? -2n * value - 1n : 2n * value);
  }

  text(value: string): this {
    return this.sized(utf8(value));
  }

  /** Bytes after their number. */
  sized(value: Uint8Array): this {
    return this.number(value.length).raw(value);
  }

  raw(value: Uint8Array): this {
    if (this.length + value.length > this.buffer.length) {
      this.buffer = concat(this.buffer, new Uint8Array(this.buffer.length + value.length));
    }
    this.buffer.set(value, this.length);
    this.length += value.length;
    return this;
  }

  list<T>(all: readonly T[], write: (item: T) => unknown): this {
    this.number(all.length);
    for (const item of all) write(item);
    return this;
  }
}

/** The bytes are not what they should be. */
export class PostcardError extends Error {}

/** Reads postcard. */
export class Reader {
  private at = 0;

  constructor(private readonly from: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.at === this.from.length;
  }

  raw(length: number): Bytes {
    this.skip(length);
    return new Uint8Array(this.from.subarray(this.at - length, this.at));
  }

  /** Passes over bytes, without a copy of them. */
  skip(length: number): void {
    if (length > this.from.length - this.at) throw new PostcardError('the bytes end too early');
    this.at += length;
  }

  octet(): number {
    return this.raw(1)[0] as number;
  }

  /** A number of up to 64 bits. */
  number(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 64n; shift += 7n) {
      const next = this.octet();
      value |= BigInt(next & 0x7f) << shift;
      if (next < 0x80) {
        if (value >> 64n !== 0n) break;
        return value;
      }
    }
    throw new PostcardError('a number is too long');
  }

  /** A number that counts something in the bytes that follow. */
  size(): number {
    const found = this.number();
    if (found > BigInt(this.from.length - this.at)) throw new PostcardError('a length is too large');
    return Number(found);
  }

  sized(): Bytes {
    return this.raw(this.size());
  }

  text(): string {
    return new TextDecoder('utf-8', { fatal: true }).decode(this.sized());
  }

  bool(): boolean {
    const flag = this.octet();
    if (flag > 1) throw new PostcardError('a flag is neither 0 nor 1');
    return flag === 1;
  }

  list<T>(read: () => T): T[] {
    const found: T[] = [];
    // Room is made for what is there, not for what a number says.
    for (let left = this.size(); left > 0; left--) found.push(read());
    return found;
  }
}

/** The cells of an item in a count-min sketch. The hash is public, and binds collisions to schema and attribute. */
import { sha256 } from '@noble/hashes/sha2';
import { concat, u64 } from '../bytes.js';
import { labelledHash } from '../crypto/hash.js';
import { schemaId } from '../schema/id.js';
import type { Schema } from '../schema/model.js';
import type { Value } from './row.js';

const LABEL = 'alpheus/sketch/v1';
const ROWS_A_BLOCK = 4;

/** The hash of one sketch. */
export class SketchHash {
  /** Seed and zeros, which fill SHA-256's first block. */
  private readonly seeded = new Uint8Array(64);
  private readonly depth: number;
  private readonly width: bigint;

  constructor(schema: Schema, attribute: number, aggregation: number, shape: { depth: number; width: number }) {
    const two = (number: number): Uint8Array => Uint8Array.of(number >> 8, number & 0xff);
    this.seeded.set(labelledHash(LABEL, schemaId(schema), two(attribute), two(aggregation)));
    this.depth = shape.depth;
    this.width = BigInt(shape.width);
  }

  /** Calls with the position of the item's cell in each row. */
  visit(value: NonNullable<Value>, cell: (at: number) => void): void {
    const item = value instanceof Uint8Array ? value : u64(BigInt(value));
    for (let k = 0; ROWS_A_BLOCK * k < this.depth; k++) {
      const block = new DataView(sha256(concat(this.seeded, Uint8Array.of(k), item)).buffer);
      for (let row = ROWS_A_BLOCK * k; row < Math.min(this.depth, ROWS_A_BLOCK * (k + 1)); row++) {
        // ⌊hash · width / 2^64⌋
        const column = (block.getBigUint64(8 * (row % ROWS_A_BLOCK)) * this.width) >> 64n;
        cell(row * Number(this.width) + Number(column));
      }
    }
  }
}

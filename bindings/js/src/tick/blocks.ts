/** How the words of an event are cut into the leaves of a tree: words of different attributes are never in one block. */
import type { Bytes } from '../bytes.js';
import { rootOf } from '../crypto/tree-hash.js';
import { bytesOf, type Words } from '../encode/words.js';
import { attributesOf, type Layout, wordsOf } from '../layout/model.js';

/** Most words of a block: a proof shows whole blocks. */
const MAX = 8;
/** Bytes of the root that are on the wire. */
export const ROOT = 16;

/** The numbers of words of a layout's blocks, in order. */
export function blocksOf(layout: Layout): number[] {
  const lengths: number[] = [];
  const cut = (run: number): void => {
    for (let left = run; left > 0; left -= MAX) lengths.push(Math.min(left, MAX));
  };
  let owner: string | undefined;
  let run = 0;
  for (const field of layout.fields) {
    const next = attributesOf(field.statistic).join();
    if (next !== owner) {
      cut(run);
      run = 0;
    }
    owner = next;
    run += wordsOf(field);
  }
  cut(run);
  // The check word has no owner.
  cut(1);
  return lengths;
}

/** Makes roots over sums in blocks of these lengths. */
export class Blocks {
  /** Words in all. */
  readonly words: number;
  /** The leaves' bytes, with room for their words; the headers do not change. */
  private readonly leaves: readonly Uint8Array[];

  constructor(readonly lengths: readonly number[]) {
    this.words = lengths.reduce((sum, length) => sum + length, 0);
    this.leaves = lengths.map((length, number) => {
      // A leaf begins with a zero byte.
      const leaf = new Uint8Array(9 + 8 * length);
      const view = new DataView(leaf.buffer);
      view.setUint32(1, number);
      view.setUint32(5, length);
      return leaf;
    });
  }

  /** The root over a sum, 32 bytes. */
  root(sum: Words): Bytes {
    const bytes = bytesOf(sum);
    let at = 0;
    for (const leaf of this.leaves) {
      for (let i = 9; i < leaf.length; i++) leaf[i] = bytes[at++] as number;
    }
    return rootOf(this.leaves);
  }
}

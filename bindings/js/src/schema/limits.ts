/** Limits of schemas. */
import type { Node } from '../document/node.js';

/** Words of the longest vector: the cipher counts its blocks of two in 12 bits. */
export const MAX_WORDS = 8192;
/** The largest 32-bit number. */
export const U32 = 0xffff_ffffn;
/** A day in microseconds. */
export const DAY = 86_400_000_000;

const MAX_ITEMS = 1000;

/** A list of one to the maximum number of items. */
export function items(node: Node): readonly Node[] {
  const found = node.list();
  if (found.length === 0) throw node.error('EmptyList');
  if (found.length > MAX_ITEMS) throw node.error('TooMany', MAX_ITEMS);
  return found;
}

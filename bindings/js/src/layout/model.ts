/** The place of each statistic in an event's vector of 64-bit words. */

/** A product of at most two values. */
export type Moment = 'count' | 'x' | 'y' | 'xx' | 'xy' | 'yy';

/** What the cells of a field sum. Numbers are positions of attributes, or of aggregations of one. */
export type Statistic =
  | { readonly kind: 'event-count' }
  | { readonly kind: 'count' | 'sum' | 'sum-of-squares' | 'any' | 'all'; readonly of: number }
  | { readonly kind: 'histogram' | 'sketch'; readonly of: number; readonly aggregation: number }
  | { readonly kind: 'pair'; readonly y: number; readonly x: number; readonly moment: Moment }
  | { readonly kind: 'by'; readonly of: number; readonly by: number; readonly aggregation: number; readonly order: number }
  | { readonly kind: 'threshold'; readonly of: number; readonly aggregation: number; readonly order: number };

/** How the cells of a field are packed into words. */
export type Packing =
  | { readonly kind: 'whole' }
  /** Signed digits, the first cell lowest. The window's sum of each fits, so there is no carry. */
  | { readonly kind: 'digits'; readonly bits: number; readonly perWord: number }
  /** Two words a cell: the value's low 32 bits, then the rest, signed. */
  | { readonly kind: 'limbs' };

/** A run of cells that hold one kind of statistic. */
export interface Field {
  readonly statistic: Statistic;
  readonly first: number;
  readonly cells: number;
  readonly packing: Packing;
}

/** The place of a cell: its (first) word, its digit's lowest bit there, and whether it has two words. */
export interface Cell {
  readonly word: number;
  readonly shift: number;
  readonly limbs: boolean;
}

/** Fields in the order of their words. The last word is the check word, zero in every event. */
export interface Layout {
  readonly fields: readonly Field[];
  readonly words: number;
}

/** The number of words of a field. */
export function wordsOf({ cells, packing }: Pick<Field, 'cells' | 'packing'>): number {
  if (packing.kind === 'digits') return Math.ceil(cells / packing.perWord);
  return packing.kind === 'limbs' ? 2 * cells : cells;
}

/** The place of a field's cell. */
export function cellOf({ first, packing }: Field, i: number): Cell {
  if (packing.kind === 'digits') {
    const { bits, perWord } = packing;
    return { word: first + Math.floor(i / perWord), shift: (i % perWord) * bits, limbs: false };
  }
  const limbs = packing.kind === 'limbs';
  return { word: first + (limbs ? 2 * i : i), shift: 0, limbs };
}

/** The attributes that a statistic derives from, that of the sum first. None for the event count. */
export function attributesOf(statistic: Statistic): readonly number[] {
  switch (statistic.kind) {
    case 'event-count':
      return [];
    case 'pair':
      return [statistic.y, statistic.x];
    case 'by':
      return [statistic.of, statistic.by];
    default:
      return [statistic.of];
  }
}

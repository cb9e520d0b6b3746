/** Encodes one event's values as words of a layout (Zeph §3.2). */
import { layoutOf } from '../layout/build.js';
import { type Cell, cellOf, type Field, type Layout, type Moment } from '../layout/model.js';
import { binOf, fastBin } from '../schema/edges.js';
import type { Aggregation, Attribute, Edges, Schema } from '../schema/model.js';
import { checkRow, type Value } from './row.js';
import { SketchHash } from './sketch.js';
import { addTo, type Words } from './words.js';

/** Fills an array with random bytes. */
export type Random = (out: Uint8Array<ArrayBuffer>) => void;

/** Adds one field's part of an event. The layout was made from the bounds of the values, so the result fits. */
type Op = (row: readonly Value[], random: Random, words: Words) => void;

/** Turns events of one schema into vectors of words. It is compiled once, and holds no secret. */
export class Encoder {
  readonly layout: Layout;
  private readonly attributes: readonly Attribute[];
  private readonly ops: readonly Op[];

  constructor(schema: Schema) {
    this.layout = layoutOf(schema);
    this.attributes = schema.attributes;
    this.ops = this.layout.fields.map((field) => opOf(schema, field));
  }

  /** Words of an event's vector, the check word included. */
  get words(): number {
    return this.layout.words;
  }

  /**
   * Adds one event to a vector. All values are checked before the first word changes.
   *
   * @param row values in the order of the attributes
   * @param random draws the words of `any` and `all` only
   * @throws EncodeError if a value is not as declared
   */
  encode(row: readonly Value[], random: Random, words: Words): void {
    checkRow(this.attributes, row);
    for (const op of this.ops) op(row, random, words);
  }
}

function opOf(schema: Schema, field: Field): Op {
  const { statistic } = field;
  const cell = cellOf(field, 0);
  switch (statistic.kind) {
    case 'event-count':
      return (_row, _random, words) => put(words, cell, 1, 1);
    case 'count':
      return (row, _random, words) => {
        if (row[statistic.of] !== undefined) put(words, cell, 1, 1);
      };
    case 'sum':
      return moment(statistic.of, statistic.of, 'x', cell);
    case 'sum-of-squares':
      return moment(statistic.of, statistic.of, 'xx', cell);
    case 'pair':
      return moment(statistic.x, statistic.y, statistic.moment, cell);
    case 'any':
    case 'all':
      return word(statistic.of, statistic.kind === 'any', cell.word);
    default: {
      const offered = schema.attributes[statistic.of]?.aggregations[statistic.aggregation] as Aggregation;
      return ofCells(schema, field, offered);
    }
  }
}

function ofCells(schema: Schema, field: Field, offered: Aggregation): Op {
  const { statistic } = field;
  const cells = Array.from({ length: field.cells }, (_, i) => cellOf(field, i));
  if (statistic.kind === 'histogram' && offered.kind === 'histogram') {
    return binned(statistic.of, 0, statistic.of, offered.edges, cells);
  }
  if (statistic.kind === 'by' && offered.kind === 'by') {
    return binned(statistic.of, statistic.order, statistic.by, offered.edges, cells);
  }
  if (statistic.kind === 'threshold' && offered.kind === 'threshold') {
    const { of, order } = statistic;
    const [above, below] = cells as [Cell, Cell];
    return (row, _random, words) => {
      const x = numberAt(row, of);
      if (x !== undefined) power(words, x >= offered.at ? above : below, x, order);
    };
  }
  if (statistic.kind === 'sketch' && offered.kind === 'sketch') {
    const hash = new SketchHash(schema, statistic.of, statistic.aggregation, offered);
    return (row, _random, words) => {
      const item = row[statistic.of];
      if (item !== undefined) hash.visit(item, (at) => put(words, cells[at] as Cell, 1, 1));
    };
  }
  throw new Error(`the layout has a ${statistic.kind} where the schema has none`);
}

/** The number at a position; a truth value is 0 or 1. */
function numberAt(row: readonly Value[], position: number): number | bigint | undefined {
  const value = row[position];
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'number' || typeof value === 'bigint' ? value : undefined;
}

/** A moment of two values, if the event has both. */
function moment(x: number, y: number, which: Moment, cell: Cell): Op {
  return (row, _random, words) => {
    const [one, other] = [numberAt(row, x), numberAt(row, y)];
    if (one === undefined || other === undefined) return;
    if (which === 'count') put(words, cell, 1, 1);
    else if (which === 'x') put(words, cell, one, 1);
    else if (which === 'y') put(words, cell, other, 1);
    else put(words, cell, which === 'yy' ? other : one, which === 'xx' ? one : other);
  };
}

/** A power of one value in the cell of the bin of another, if the event has both. */
function binned(of: number, order: number, by: number, edges: Edges, cells: readonly Cell[]): Op {
  const fast = fastBin(edges);
  return (row, _random, words) => {
    const [x, bucket] = [numberAt(row, of), numberAt(row, by)];
    if (x === undefined || bucket === undefined) return;
    const isFast = fast !== undefined && typeof bucket === 'number' && Math.abs(bucket) < 2 ** 52;
    power(words, cells[isFast ? fast(bucket) : binOf(edges, BigInt(bucket))] as Cell, x, order);
  };
}

/** A random word if the value matches; zero would mean that it was absent. */
function word(of: number, when: boolean, at: number): Op {
  const drawn = new Uint8Array(8);
  return (row, random, words) => {
    if (row[of] !== when) return;
    random(drawn);
    const [low = 0, high = 0] = new Uint32Array(drawn.buffer);
    addTo(words, at, low === 0 && high === 0 ? 1 : low, high);
    drawn.fill(0);
  };
}

function power(words: Words, cell: Cell, x: number | bigint, order: number): void {
  put(words, cell, order === 0 ? 1 : x, order === 2 ? x : 1);
}

/** Adds a·b to a cell. Only a negative digit wraps, as it must. */
function put(words: Words, cell: Cell, a: number | bigint, b: number | bigint): void {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    if (Number.isSafeInteger(product) && !cell.limbs) {
      putNumber(words, cell, product);
      return;
    }
  }
  const product = BigInt(a) * BigInt(b);
  if (cell.limbs) {
    // The low 32 bits, then the rest, signed.
    addTo(words, cell.word, Number(BigInt.asUintN(32, product)), 0);
    addBig(words, cell.word + 1, product >> 32n);
  } else {
    addBig(words, cell.word, product << BigInt(cell.shift));
  }
}

function addBig(words: Words, word: number, value: bigint): void {
  const bits = BigInt.asUintN(64, value);
  addTo(words, word, Number(bits & 0xffff_ffffn), Number(bits >> 32n));
}

function putNumber(words: Words, { word, shift }: Cell, value: number): void {
  const low = value >>> 0;
  const high = Math.floor(value / 0x1_0000_0000) >>> 0;
  if (shift === 0) addTo(words, word, low, high);
  else if (shift < 32) addTo(words, word, (low << shift) >>> 0, ((high << shift) | (low >>> (32 - shift))) >>> 0);
  else addTo(words, word, 0, (low << (shift - 32)) >>> 0);
}

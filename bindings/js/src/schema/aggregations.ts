/** Reads the aggregations of one attribute, which may refer to others. */
import { Fields, type Node } from '../document/node.js';
import { I64 } from '../document/decimal.js';
import { items, MAX_WORDS } from './limits.js';
import { type Aggregation, type Attribute, type Edges, folded } from './model.js';

type Simple = 'count' | 'sum' | 'mean' | 'variance' | 'any' | 'all';

const WORDS: readonly (readonly [string, Simple])[] = [
  ['count', 'count'],
  ['sum', 'sum'],
  ['mean', 'mean'],
  ['avg', 'mean'],
  ['var', 'variance'],
  ['variance', 'variance'],
  ['stddev', 'variance'],
  ['any', 'any'],
  ['all', 'all'],
];
const MAPS = ['histogram', 'regression', 'by', 'threshold', 'sketch'];
const STATISTICS = ['count', 'sum', 'mean', 'avg', 'squares', 'var', 'variance'];
const ORDERS = [0, 1, 1, 1, 2, 2, 2];
const MAX_DEPTH = 32;

/** The aggregations of the attribute at a position. */
export function readAggregations(list: Node, attributes: readonly Attribute[], position: number): Aggregation[] {
  const reader = new Reader(attributes, position, attributes[position] as Attribute);
  const all: Aggregation[] = [];
  const seen = new Set<string>();
  for (const item of items(list)) {
    const isMap = item.value.kind === 'entries';
    const read = isMap ? reader.map(item) : reader.word(item);
    const key = JSON.stringify(read, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
    if (seen.has(key)) throw item.error('DuplicateName', isMap ? [...item.map().keys()][0] : item.text());
    seen.add(key);
    all.push(read);
  }
  return all;
}

class Reader {
  constructor(
    private readonly attributes: readonly Attribute[],
    private readonly position: number,
    private readonly own: Attribute,
  ) {}

  map(item: Node): Aggregation {
    const [entry, another] = item.map();
    if (entry === undefined || another !== undefined) {
      throw item.expected('one aggregation per item, as in `- histogram: {…}`');
    }
    const [name, value] = entry;
    switch (name) {
      case 'histogram':
        return this.histogram(value);
      case 'regression':
        return this.regression(value);
      case 'by':
        return this.by(value);
      case 'threshold':
        return { kind: 'threshold', at: value.decimal(this.ownScale(value, 'threshold')) };
      case 'sketch':
        return sketch(value);
      default:
        throw value.error('UnknownKey', name, MAPS.join(', '));
    }
  }

  word(item: Node): Aggregation {
    const [word, kind] = WORDS[item.word(WORDS.map(([word]) => word))] as (typeof WORDS)[number];
    const fits = kind === 'count' || this.own.kind.kind === (kind === 'any' || kind === 'all' ? 'truth' : 'number');
    if (!fits) throw this.wrongType(item, word);
    return { kind };
  }

  private histogram(node: Node): Aggregation {
    const fields = Fields.of(node, ['lo', 'width', 'bins', 'edges']);
    return { kind: 'histogram', edges: edges(fields, this.ownScale(node, 'histogram')) };
  }

  private regression(node: Node): Aggregation {
    this.ownScale(node, 'regression');
    const fields = Fields.of(node, ['x', 'r2']);
    const x = this.other(fields.required('x'));
    return { kind: 'regression', x, rSquared: fields.or('r2', false, (found) => found.bool()) };
  }

  private by(node: Node): Aggregation {
    const fields = Fields.of(node, ['attribute', 'lo', 'width', 'bins', 'edges', 'statistics']);
    const attribute = this.other(fields.required('attribute'));
    const order = fields.or('statistics', 1, statistics);
    if (order > 0) this.ownScale(node, 'by');
    const { kind } = this.attributes[attribute] as Attribute;
    return { kind: 'by', attribute, edges: edges(fields, kind.kind === 'number' ? kind.scale : 0), order };
  }

  /** Position of another attribute that is a number. */
  private other(node: Node): number {
    const name = node.name();
    const position = this.attributes.findIndex((attribute) => folded(attribute.name) === folded(name));
    if (position < 0) throw node.error('UnknownAttribute', name);
    if (position === this.position) throw node.expected('another attribute than this one');
    if (this.attributes[position]?.kind.kind !== 'number') throw node.expected('an attribute that is a number');
    return position;
  }

  /** The scale of this attribute, which must be a number. */
  private ownScale(node: Node, aggregation: string): number {
    if (this.own.kind.kind === 'number') return this.own.kind.scale;
    throw this.wrongType(node, aggregation);
  }

  private wrongType(node: Node, aggregation: string): Error {
    const names = { truth: 'boolean', text: 'string', number: 'integer or decimal' };
    return node.error('WrongType', names[this.own.kind.kind], aggregation);
  }
}

/** The highest moment that the listed statistics need. */
function statistics(node: Node): number {
  const orders = node.oneOrList().map((item) => ORDERS[item.word(STATISTICS)] as number);
  if (orders.length === 0) throw node.error('EmptyList');
  return Math.max(...orders);
}

function sketch(node: Node): Aggregation {
  const fields = Fields.of(node, ['depth', 'width']);
  const depth = Number(fields.required('depth').integer(1, MAX_DEPTH));
  return { kind: 'sketch', depth, width: Number(fields.required('width').integer(2, MAX_WORDS)) };
}

/** Edges in units of 10^-scale: lo, width and bins, or edges. */
function edges(fields: Fields, scale: number): Edges {
  if (fields.get('edges') !== undefined) {
    for (const key of ['lo', 'width', 'bins']) fields.refuse(key, '`edges`');
    return { kind: 'explicit', edges: ascending(fields.required('edges'), scale) };
  }
  const lo = fields.required('lo').decimal(scale);
  const wide = fields.required('width');
  const width = wide.decimal(scale);
  if (width <= 0n) throw wide.error('OutOfRange', 'above 0', 'any width');
  const count = Number(fields.required('bins').integer(1, MAX_WORDS));
  if (lo + width * BigInt(count) > I64.most || width * BigInt(count) > I64.most) {
    throw wide.error('Number', 'the last edge does not fit 64 bits; use a smaller scale or unit');
  }
  return { kind: 'uniform', lo, width, count };
}

/** Strictly ascending edges. */
export function ascending(list: Node, scale: number): bigint[] {
  const nodes = list.list();
  if (nodes.length > MAX_WORDS) throw list.error('TooMany', MAX_WORDS);
  const found: bigint[] = [];
  for (const item of nodes) {
    const edge = item.decimal(scale);
    const last = found[found.length - 1];
    if (last !== undefined && last >= edge) throw item.error('EdgesNotAscending');
    found.push(edge);
  }
  if (found.length === 0) throw list.error('EmptyList');
  return found;
}

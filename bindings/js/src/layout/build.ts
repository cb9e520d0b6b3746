/**
 * Lays out the statistics of a schema in words: those that its attributes offer, each once, in schema order, then the
 * event count if anything shares it, then the check word. A function of the schema alone, so all parties agree on it.
 */
import { AlpheusError, fill } from '../errors.js';
import { bins, isAsFineAs } from '../schema/edges.js';
import { MAX_WORDS } from '../schema/limits.js';
import type { Aggregation, Attribute, Edges, PolicyOption, Schema } from '../schema/model.js';
import { attributesOf, type Field, type Layout, type Moment, type Packing, type Statistic, wordsOf } from './model.js';

const FAULTS = {
  SumTooLarge:
    'the sum of attribute {0} over a window may not fit in two 64-bit words; narrow its bounds, or lower its scale or the capacity',
  TooManyWords: 'an event would take {0} words, at most 8192 fit; use fewer bins',
} as const;

/** A schema without a layout. The number is the attribute's position, or the number of words. */
export class LayoutError extends AlpheusError<keyof typeof FAULTS> {
  constructor(
    fault: keyof typeof FAULTS,
    readonly number: number,
  ) {
    super(fault, fill(FAULTS[fault], [number]));
  }
}

/** The largest sum that one word holds, in two's complement. */
const WORD = 1n << 63n;
const WORD_BITS = 64;
const MAX_POSITION = 0xffff;
/**
 * The noise exceeds this tail with a probability of 2^-64: 45 > 64·ln 2 times the scale of a Laplace distribution,
 * in millionths as ε is.
 */
const TAIL = 45_000_000n;
const WHOLE: Packing = { kind: 'whole' };
const known = new WeakMap<Schema, Layout>();

/** The layout of a schema's events. */
export function layoutOf(schema: Schema): Layout {
  let layout = known.get(schema);
  if (layout === undefined) {
    layout = build(schema);
    known.set(schema, layout);
  }
  return layout;
}

function build(schema: Schema): Layout {
  const fields: Field[] = [];
  let next = 0;
  for (const { statistic, cells } of collect(schema)) {
    const packing = packingOf(schema, statistic, cells);
    if (next > MAX_POSITION || cells > MAX_POSITION) {
      throw new LayoutError('TooManyWords', next > MAX_POSITION ? next : next + cells);
    }
    const field = { statistic, first: next, cells, packing };
    next += wordsOf(field);
    fields.push(field);
  }
  if (next + 1 > MAX_WORDS) throw new LayoutError('TooManyWords', next + 1);
  return { fields, words: next + 1 };
}

interface Offered {
  statistic: Statistic;
  cells: number;
}

function collect(schema: Schema): Offered[] {
  const found = new Map<string, Offered>();
  const add = (statistic: Statistic, cells = 1): void => {
    const key = JSON.stringify(statistic);
    if (!found.has(key)) found.set(key, { statistic, cells });
  };
  for (const [a, attribute] of schema.attributes.entries()) {
    for (const [k, offered] of attribute.aggregations.entries()) offer(schema, a, k, offered, add);
  }
  // The shared count belongs to no attribute, so it comes last.
  const isShared = ({ statistic }: Offered): boolean => statistic.kind === 'event-count';
  const all = [...found.values()];
  return [...all.filter((each) => !isShared(each)), ...all.filter(isShared)];
}

type Add = (statistic: Statistic, cells?: number) => void;

function offer(schema: Schema, a: number, k: number, offered: Aggregation, add: Add): void {
  switch (offered.kind) {
    case 'histogram':
      add({ kind: 'histogram', of: a, aggregation: k }, bins(offered.edges));
      return;
    case 'regression':
      // Over events that have both values, so not shared with the attributes' own.
      for (const moment of ['count', 'x', 'y', 'xx', 'xy', 'yy'] as const satisfies readonly Moment[]) {
        if (moment !== 'yy' || offered.rSquared) add({ kind: 'pair', y: a, x: offered.x, moment });
      }
      return;
    case 'by':
      for (let order = 0; order <= offered.order; order++) {
        add({ kind: 'by', of: a, by: offered.attribute, aggregation: k, order }, bins(offered.edges));
      }
      return;
    case 'threshold':
      for (const order of [0, 1]) add({ kind: 'threshold', of: a, aggregation: k, order }, 2);
      return;
    case 'sketch':
      add({ kind: 'sketch', of: a, aggregation: k }, offered.depth * offered.width);
      return;
    default:
      simple(schema, a, offered.kind, add);
  }
}

function simple(schema: Schema, a: number, offered: string, add: Add): void {
  const { optional } = schema.attributes[a] as Attribute;
  const count: Statistic = schema.sharedCount && !optional ? { kind: 'event-count' } : { kind: 'count', of: a };
  switch (offered) {
    case 'count':
      add(count);
      return;
    case 'sum':
      add({ kind: 'sum', of: a });
      // Without its count an empty sum would look like a sum of zero.
      if (optional) add(count);
      return;
    case 'mean':
    case 'variance':
      add({ kind: 'sum', of: a });
      if (offered === 'variance') add({ kind: 'sum-of-squares', of: a });
      add(count);
      return;
    default:
      add({ kind: offered as 'any' | 'all', of: a });
  }
}

/** How the cells of one statistic are packed into words. */
function packingOf(schema: Schema, statistic: Statistic, cells: number): Packing {
  if (statistic.kind === 'any' || statistic.kind === 'all') return WHOLE;
  const event = eventBound(schema, statistic);
  const noise = noiseBound(schema, statistic, event);
  const events = schema.capacity.population * schema.capacity.events;
  const sum = event * events + noise;
  if (sum < WORD) return mayShare(schema, statistic) ? digits(sum, cells) : WHOLE;
  // Both halves' sums fit a word: the low ones are below 2^32 each, the high ones at most
  // event / 2^32 + 1 in magnitude, and noise adds to either.
  const high = ((event >> 32n) + 1n) * events;
  if (events << 32n < WORD && high + (noise >> 32n) + 1n < WORD) return { kind: 'limbs' };
  throw new LayoutError('SumTooLarge', attributesOf(statistic)[0] ?? 0);
}

/**
 * Whether the cells of a field may share words. They may if they are the bins of a grid, and no offered option sums
 * them or adds noise to them. (Thresholds and sketches are bins too, but queries ask for single cells.)
 */
function mayShare(schema: Schema, statistic: Statistic): boolean {
  if (statistic.kind !== 'histogram' && statistic.kind !== 'by') return false;
  const offered = schema.attributes[statistic.of]?.aggregations[statistic.aggregation] as { edges: Edges };
  const bucketed = statistic.kind === 'by' ? statistic.by : statistic.of;
  const addedUp = schema.options.some(({ generalise }) =>
    generalise.some((coarse) => coarse.attribute === bucketed && !isAsFineAs(coarse, offered.edges)),
  );
  return !addedUp && noisyOptions(schema, statistic).length === 0;
}

/** Uses as few words as the digits allow, and then the widest digits that fit into these words. */
function digits(sum: bigint, cells: number): Packing {
  const narrowest = (sum === 0n ? 0 : sum.toString(2).length) + 1;
  const fit = Math.max(Math.floor(WORD_BITS / narrowest), 1);
  const words = Math.max(Math.ceil(cells / fit), 1);
  const perWord = Math.ceil(cells / words);
  return perWord > 1 ? { kind: 'digits', bits: Math.floor(WORD_BITS / perWord), perWord } : WHOLE;
}

/** Largest magnitude of a cell in one event. */
function eventBound(schema: Schema, statistic: Statistic): bigint {
  const of = (attribute: number): bigint => magnitude(schema, attribute);
  switch (statistic.kind) {
    case 'sum':
      return of(statistic.of);
    case 'sum-of-squares':
      return of(statistic.of) ** 2n;
    case 'threshold':
    case 'by':
      return of(statistic.of) ** BigInt(statistic.order);
    case 'pair': {
      const [x, y] = [of(statistic.x), of(statistic.y)];
      return { count: 1n, x, y, xx: x * x, xy: x * y, yy: y * y }[statistic.moment];
    }
    default:
      return 1n;
  }
}

/** Largest |scaled value| of an attribute; 1 if it is not a number. */
function magnitude(schema: Schema, attribute: number): bigint {
  const kind = schema.attributes[attribute]?.kind;
  if (kind?.kind !== 'number') return 1n;
  const [min, max] = [kind.min < 0n ? -kind.min : kind.min, kind.max < 0n ? -kind.max : kind.max];
  return min > max ? min : max;
}

/** The noise tail under the smallest ε per window that an option offers: one person's window × 45 / ε. */
function noiseBound(schema: Schema, statistic: Statistic, event: bigint): bigint {
  const epsilons = noisyOptions(schema, statistic).flatMap(({ budget }) => (budget === undefined ? [] : [budget.window]));
  if (epsilons.length === 0) return 0n;
  const least = epsilons.reduce((a, b) => (a < b ? a : b));
  return (event * schema.capacity.events * TAIL + least - 1n) / least;
}

/** Options under which the statistic may be released with noise. */
function noisyOptions(schema: Schema, statistic: Statistic): PolicyOption[] {
  const of = attributesOf(statistic);
  return schema.options.filter(
    ({ kind, attributes }) => kind === 'dp-aggregate' && of.some((attribute) => attributes.includes(attribute)),
  );
}

/** Reads the policy options of a schema. */
import { utf8 } from '../bytes.js';
import { type Fraction, fraction } from '../document/fraction.js';
import { Fields, type Node } from '../document/node.js';
import { ascending } from './aggregations.js';
import { groups } from './edges.js';
import { items, U32 } from './limits.js';
import { type Budget, type Edges, type Generalise, OPTION_KINDS, type PolicyOption, positionOf, type Schema } from './model.js';

const KEYS = [
  'name', 'option', 'attributes', 'window', 'windows', 'clients', 'minimumPopulation', 'generalise', 'budget', 'to',
  'alpha', 'colluders', 'dropout', 'missingTicks', 'splitPopulations', 'trusted', 'integrity',
];
const POPULATION = ['clients', 'minimumPopulation', 'splitPopulations', 'trusted', 'alpha', 'colluders', 'dropout'];
const REST = ['window', 'windows', 'generalise', 'to', 'missingTicks', 'integrity'];
const INTEGRITY = ['allowed', 'none'];
const DEFAULT_COLLUDERS = 8n;
const UNITS = ['event', 'person-per-window', 'person-per-period'];
const [MICRO, ATTO] = [6, 18];
const MAX_DELTA = 999_999_999_999_999_999n;

/** The options of a schema that has none yet. */
export function readOptions(node: Node, schema: Schema, sizes: ReadonlyMap<string, bigint>): PolicyOption[] {
  const options: PolicyOption[] = [];
  const names = new Set<string>();
  for (const item of items(node)) {
    const option = new Reader(Fields.of(item, KEYS), schema, sizes).option();
    if (names.has(option.name)) throw item.error('DuplicateName', option.name);
    names.add(option.name);
    options.push(option);
  }
  return options;
}

class Reader {
  constructor(
    private readonly fields: Fields,
    private readonly schema: Schema,
    private readonly sizes: ReadonlyMap<string, bigint>,
  ) {}

  option(): PolicyOption {
    const { fields } = this;
    const kind = OPTION_KINDS[fields.required('option').word(OPTION_KINDS)] as PolicyOption['kind'];
    this.refuseOthers(kind);
    const many = kind === 'aggregate' || kind === 'dp-aggregate';
    const read = (node: Node): Fraction => node.fraction();
    const alpha = fields.or('alpha', many ? fraction(1, 3) : fraction(0, 1), read);
    // Who expects no collusion at all expects none of a number either.
    const colluders = alpha.numerator === 0n ? 0n : DEFAULT_COLLUDERS;
    return {
      name: fields.required('name').name(),
      kind,
      attributes: this.attributes(),
      windows: this.windows(),
      clients: many ? this.clients() : [1n],
      namedClients: this.namedClients(),
      generalise: this.generalise(),
      budget: kind === 'dp-aggregate' ? budget(fields.required('budget')) : undefined,
      to: fields.or('to', [], consumers),
      alpha,
      colluders: fields.or('colluders', colluders, (node) => node.integer(0, U32)),
      dropout: fields.or('dropout', many ? fraction(1, 5) : fraction(1, 1), read),
      missingTicks: fields.or('missingTicks', 0n, (node) => node.integer(0, U32)),
      splitPopulations: fields.or('splitPopulations', false, onePopulation),
      trusted: fields.or('trusted', [], fingerprints),
      verified: fields.or('integrity', true, (node) => node.word(INTEGRITY) === 0),
    };
  }

  /** Constraints that the kind does not use are mistakes worth reporting. */
  private refuseOthers(kind: PolicyOption['kind']): void {
    const refuse = (keys: readonly string[], other: string): void => {
      for (const key of keys) this.fields.refuse(key, other);
    };
    if (kind === 'private') refuse([...POPULATION, ...REST], '`private`, which allows nothing');
    if (kind === 'public') {
      refuse(POPULATION, '`public`, which allows everything');
      refuse(['window', 'windows', 'generalise'], '`public`; use `stream-aggregate`');
    }
    if (kind === 'stream-aggregate') refuse(POPULATION, '`stream-aggregate`, which releases one stream');
    if (kind !== 'dp-aggregate') refuse(['budget'], 'an option without noise; make it `dp-aggregate`');
  }

  private attributes(): number[] {
    const list = this.fields.get('attributes');
    if (list === undefined) return this.schema.attributes.map((_, position) => position);
    return filled(list, list.oneOrList().map((item) => this.position(item)), (a, b) => a - b);
  }

  private position(node: Node): number {
    const position = positionOf(this.schema.attributes, node.name());
    if (position < 0) throw node.error('UnknownAttribute', node.name());
    return position;
  }

  /** The value of a key with two spellings. */
  private either(one: string, other: string): Node | undefined {
    if (this.fields.get(one) !== undefined) this.fields.refuse(other, 'its other spelling');
    return this.fields.get(one) ?? this.fields.get(other);
  }

  private windows(): number[] {
    const list = this.either('window', 'windows');
    if (list === undefined) return [this.schema.tick];
    const windows = list.oneOrList().map((item) => {
      const window = item.duration();
      if (window % this.schema.tick !== 0) throw item.error('NotMultipleOfTick');
      return window;
    });
    return filled(list, windows, (a, b) => a - b);
  }

  private clients(): bigint[] {
    const list = this.either('clients', 'minimumPopulation');
    if (list === undefined) return [this.sizes.get('small') ?? 10n];
    const clients = list.oneOrList().map((item) => this.sizes.get(item.text()) ?? item.integer(1, U32));
    return filled(list, clients, (a, b) => (a < b ? -1 : Number(a > b)));
  }

  /** The named sizes among the minimum populations, in byte order. */
  private namedClients(): (readonly [string, bigint])[] {
    const named = new Map<string, bigint>();
    for (const item of this.either('clients', 'minimumPopulation')?.oneOrList() ?? []) {
      const size = item.value.kind === 'scalar' ? this.sizes.get(item.value.text) : undefined;
      if (size !== undefined) named.set(item.text(), size);
    }
    return [...named].sort(([a], [b]) => byBytes(a, b));
  }

  private generalise(): Generalise[] {
    return (this.fields.get('generalise')?.oneOrList() ?? []).map((item) => this.generaliseOne(item));
  }

  private generaliseOne(item: Node): Generalise {
    const own = Fields.of(item, ['attribute', 'width', 'edges']);
    const named = own.required('attribute');
    const attribute = this.position(named);
    const kind = this.schema.attributes[attribute]?.kind;
    if (kind?.kind !== 'number') throw named.expected('an attribute that is a number');
    let generalise: Generalise;
    if (own.get('edges') !== undefined) {
      own.refuse('width', '`edges`');
      generalise = { attribute, width: 0n, edges: ascending(own.required('edges'), kind.scale) };
    } else {
      generalise = { attribute, width: own.required('width').decimal(kind.scale), edges: [] };
    }
    this.liesOnAllGrids(named, item, generalise);
    return generalise;
  }

  /** The attribute must have a grid, and every grid over it must be coarsened. */
  private liesOnAllGrids(named: Node, item: Node, generalise: Generalise): void {
    const grids: (readonly [string, Edges])[] = [];
    for (const [position, attribute] of this.schema.attributes.entries()) {
      for (const offered of attribute.aggregations) {
        const own = offered.kind === 'histogram' && position === generalise.attribute;
        if (own || (offered.kind === 'by' && offered.attribute === generalise.attribute)) {
          grids.push([`${attribute.name}.${offered.kind}`, offered.edges]);
        }
      }
    }
    for (const [name, grid] of grids) {
      if (groups(generalise, grid) === undefined) throw item.error('OffGrid', name);
    }
    if (grids.length === 0) throw named.error('NothingToGeneralise', named.text());
  }
}

function budget(node: Node): Budget {
  const fields = Fields.of(node, ['perWindow', 'total', 'delta', 'unit', 'period']);
  const window = positive(fields.required('perWindow'), MICRO);
  const total = positive(fields.required('total'), MICRO);
  if (window > total) throw fields.required('perWindow').error('OutOfRange', 'above 0', 'the total');
  const delta = fields.or('delta', 0n, (found) => positive(found, ATTO));
  const unit = fields.required('unit').word(UNITS);
  if (UNITS[unit] === 'person-per-period') {
    return { window, total, delta, unit, period: fields.required('period').duration() };
  }
  fields.refuse('period', 'this unit; make it `person-per-period`');
  return { window, total, delta, unit, period: 0 };
}

/** A number above 0 in units of 10^-scale; δ stays below 1 by its 18 places. */
function positive(node: Node, scale: number): bigint {
  const number = node.decimal(scale);
  const isDelta = scale === ATTO;
  if (number <= 0n || (isDelta && number > MAX_DELTA)) {
    throw node.error('OutOfRange', 'above 0', isDelta ? 'below 1' : '9 × 10^12');
  }
  return number;
}

function onePopulation(node: Node): boolean {
  if (node.bool()) throw node.error('SplitPopulations');
  return false;
}

function consumers(node: Node): string[] {
  return filled(node, node.oneOrList().map((item) => item.text()), byBytes);
}

function fingerprints(node: Node): string[] {
  const prints = node.oneOrList().map((item) => {
    const text = item.text();
    if (!/^[0-9a-fA-F]{64}$/.test(text)) throw item.error('BadFingerprint');
    return text.toLowerCase();
  });
  return filled(node, prints, byBytes);
}

/** Each once, in order. */
function filled<T>(node: Node, all: readonly T[], order: (a: T, b: T) => number): T[] {
  if (all.length === 0) throw node.error('EmptyList');
  return [...new Set(all)].sort(order);
}

/** The order of texts by their UTF-8 bytes. JavaScript's own is by UTF-16, which differs beyond the first plane. */
function byBytes(one: string, other: string): number {
  const [a, b] = [utf8(one), utf8(other)];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  }
  return a.length - b.length;
}

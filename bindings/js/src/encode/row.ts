/** One event's values, as they are given and as they are encoded. */
import { type Bytes, utf8 } from '../bytes.js';
import { DecimalError, I64, parseScaled } from '../document/decimal.js';
import { AlpheusError, fill } from '../errors.js';
import { type Attribute, folded, type Schema } from '../schema/model.js';

const WORDS = {
  Missing: '`{0}` is missing and not optional',
  WrongType: '`{0}` takes a {1}',
  OutOfBounds: "`{0}` is outside its bounds {1}; correct the source or widen the schema's bounds",
  TooLong: '`{0}` is longer than {1} bytes',
  WrongLength: 'an event has {1} values in the order of the attributes; there is another number of them',
  Twice: '`{0}` is given twice: names are compared without case, and `-` equals `_`',
  Unknown: 'the schema has no attribute with one of the given names; its attributes are {1}',
} as const;

/** An event that cannot be encoded. It names the attribute and what is allowed, never the value. */
export class EncodeError extends AlpheusError<keyof typeof WORDS> {
  /** The attribute's name; empty if it is about the event as a whole. */
  readonly attribute: string;

  constructor(fault: keyof typeof WORDS, attribute: string, allowed: unknown = '') {
    super(fault, fill(WORDS[fault], [attribute, allowed]));
    this.attribute = attribute;
  }
}

/** A value as an application has it. Texts of decimal digits are read exactly; floats by their shortest digits. */
export type Input = number | bigint | boolean | string | null | undefined;

/** A scaled integer (a bigint where a JavaScript number would not be exact), a truth value, a text; or nothing. */
export type Value = number | bigint | boolean | Bytes | undefined;

/** A scaled integer as a number where that is exact. */
export function exact(value: bigint): number | bigint {
  return value >= -(1n << 53n) && value <= 1n << 53n ? Number(value) : value;
}

/** The values of an event given by names, in the order of the attributes. Case is ignored, and `-` equals `_`. */
export function rowOf(schema: Schema, event: Readonly<Record<string, Input>>): Value[] {
  const row: Value[] = new Array<Value>(schema.attributes.length).fill(undefined);
  const names = namesOf(schema);
  const given = new Set<number>();
  for (const [name, value] of Object.entries(event)) {
    const position = names.get(name) ?? names.get(folded(name));
    if (position === undefined) throw new EncodeError('Unknown', '', schema.attributes.map((a) => a.name).join(', '));
    const attribute = schema.attributes[position] as Attribute;
    if (given.has(position)) throw new EncodeError('Twice', attribute.name);
    given.add(position);
    row[position] = valueOf(attribute, value);
  }
  return row;
}

const namesKnown = new WeakMap<Schema, Map<string, number>>();

function namesOf(schema: Schema): Map<string, number> {
  let names = namesKnown.get(schema);
  if (names === undefined) {
    names = new Map(schema.attributes.flatMap(({ name }, i) => [[name, i], [folded(name), i]]));
    namesKnown.set(schema, names);
  }
  return names;
}

function valueOf(attribute: Attribute, value: Input): Value {
  if (value === null || value === undefined) return undefined;
  const { kind } = attribute;
  if (kind.kind === 'truth') {
    if (typeof value === 'boolean') return value;
    throw new EncodeError('WrongType', attribute.name, 'truth value');
  }
  if (kind.kind === 'text') {
    if (typeof value === 'string') return utf8(value);
    throw new EncodeError('WrongType', attribute.name, 'text');
  }
  if (typeof value === 'number' && kind.scale === 0 && Number.isSafeInteger(value)) return value;
  const outside = (): EncodeError => new EncodeError('OutOfBounds', attribute.name, boundsOf(attribute));
  try {
    if (typeof value === 'bigint') {
      const scaled = value * 10n ** BigInt(kind.scale);
      if (scaled < I64.least || scaled > I64.most) throw outside();
      return exact(scaled);
    }
    // The shortest digits that give the float: 0.285 is 0.285, and at scale 2 it is 29.
    if (typeof value === 'number' && Number.isFinite(value)) return exact(parseScaled(String(value), kind.scale));
    if (typeof value === 'string') return exact(parseScaled(value.trim(), kind.scale));
  } catch (refused) {
    if (refused instanceof DecimalError && refused.code === 'TooLarge') throw outside();
    if (!(refused instanceof DecimalError)) throw refused;
  }
  throw new EncodeError('WrongType', attribute.name, 'number');
}

/** Checks an event's values, in the order of the attributes, against what the schema declares. */
export function checkRow(attributes: readonly Attribute[], row: readonly Value[]): void {
  if (row.length !== attributes.length) throw new EncodeError('WrongLength', '', attributes.length);
  for (const [i, attribute] of attributes.entries()) check(attribute, row[i]);
}

function check(attribute: Attribute, value: Value): void {
  const { kind, name } = attribute;
  if (value === undefined) {
    if (!attribute.optional) throw new EncodeError('Missing', name);
  } else if (kind.kind === 'number') {
    if (typeof value !== 'number' && typeof value !== 'bigint') throw new EncodeError('WrongType', name, 'number');
    // JavaScript compares numbers and bigints exactly.
    if (!(kind.min <= value && value <= kind.max)) throw new EncodeError('OutOfBounds', name, boundsOf(attribute));
  } else if (kind.kind === 'text') {
    if (!(value instanceof Uint8Array)) throw new EncodeError('WrongType', name, 'text');
    if (value.length > kind.maxBytes) throw new EncodeError('TooLong', name, kind.maxBytes);
  } else if (typeof value !== 'boolean') {
    throw new EncodeError('WrongType', name, 'truth value');
  }
}

function boundsOf({ kind }: Attribute): string {
  return kind.kind === 'number' ? `${kind.min}..${kind.max} (in units of 10^-${kind.scale})` : '';
}

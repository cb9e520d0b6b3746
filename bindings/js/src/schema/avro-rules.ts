/** Avro's own rules for a record schema: names, defaults and decimals. */
import { Fields, type Node } from '../document/node.js';

/** Keys of a field. */
export const FIELD = ['name', 'type', 'doc', 'default', 'order', 'aliases', 'alpheus'];
/** Keys of a type. */
export const TYPE = ['type', 'logicalType', 'precision', 'scale', 'name', 'namespace', 'size'];

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const FULL = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/;
const EXPECTED_NAME = 'a name of letters, digits and _, which begins with no digit,';
const MAX_PRECISION = 38;
const MAX_SIZE = 1 << 10;

/** A field's keys that other readers use. */
export function checkField(fields: Fields): void {
  name(fields.required('name'), NAME);
  described(fields);
  fields.get('order')?.word(['ascending', 'descending', 'ignore']);
  const type = fields.required('type');
  // A default may be null, which stands for no other key here.
  const value = fields.node.map().get('default');
  if (value !== undefined && !(value.isNothing && type.value.kind !== 'items')) fallback(type, value);
}

/** A record's keys that other readers use. */
export function checkRecord(fields: Fields): void {
  name(fields.required('name'), FULL);
  described(fields);
  const namespace = fields.get('namespace');
  if (namespace !== undefined && !(namespace.value.kind === 'scalar' && namespace.value.text === '')) {
    name(namespace, FULL);
  }
  const seen = new Set<string>();
  for (const node of fields.required('fields').list()) {
    const named = Fields.of(node, FIELD).required('name');
    if (seen.has(named.text())) throw named.error('DuplicateKey', named.text());
    seen.add(named.text());
  }
}

/** A decimal of bytes, or of a fixed type with enough room for its digits. */
export function checkDecimal(fields: Fields, type: string): void {
  const precision = Number(fields.required('precision').integer(1, MAX_PRECISION));
  fields.get('scale')?.integer(0, precision);
  if (type === 'bytes') return;
  name(fields.required('name'), FULL);
  const size = fields.required('size');
  const bytes = Number(size.integer(1, MAX_SIZE));
  if (precision > Math.floor((8 * bytes - 1) * Math.log10(2))) {
    throw size.expected('a size with room for `precision` digits');
  }
}

function described(fields: Fields): void {
  const doc = fields.get('doc');
  if (doc !== undefined) quoted(doc);
  for (const alias of fields.get('aliases')?.list() ?? []) name(alias, FULL);
}

function quoted(node: Node): void {
  if (node.value.kind !== 'scalar' || node.value.plain) throw node.expected('a text in quotes');
}

function name(node: Node, pattern: RegExp): void {
  quoted(node);
  if (!pattern.test(node.text())) throw node.expected(EXPECTED_NAME);
}

function fallback(type: Node, value: Node): void {
  if (type.value.kind === 'items') {
    const [first] = type.value.nodes;
    if (first !== undefined) fallback(first, value);
    return;
  }
  const named = type.value.kind === 'entries' ? Fields.of(type, TYPE).required('type').text() : type.text();
  if (!fits(named, value)) throw value.expected("a value of the type, of a union's first type");
}

function fits(type: string, { value, isNothing }: Node): boolean {
  if (type === 'null') return isNothing;
  if (value.kind !== 'scalar') return false;
  switch (type) {
    case 'boolean':
      return value.plain && (value.text === 'true' || value.text === 'false');
    case 'int':
      return value.plain && isInteger(value.text, 31n);
    case 'long':
      return value.plain && isInteger(value.text, 63n);
    case 'string':
    case 'bytes':
    case 'fixed':
      return !value.plain;
    default:
      return false;
  }
}

function isInteger(text: string, bits: bigint): boolean {
  if (!/^[+-]?[0-9]{1,30}$/.test(text)) return false;
  const number = BigInt(text.replace('+', ''));
  return number >= -(1n << bits) && number < 1n << bits;
}

/** Reads the lists of stream attributes and of metadata. */
import { Fields, type Node } from '../document/node.js';
import { readAggregations } from './aggregations.js';
import { items } from './limits.js';
import type { Attribute, AttributeKind, MetadataAttribute } from './model.js';

const KEYS = ['name', 'type', 'scale', 'min', 'max', 'unit', 'optional', 'maxBytes', 'aggregations'];
const TYPES = ['integer', 'decimal', 'boolean', 'string', 'optional'] as const;
const MAX_SCALE = 18;
const DEFAULT_MAX_BYTES = 256;
const MAX_BYTES = 0xffff;
const I32 = { least: -(2n ** 31n), most: 2n ** 31n - 1n };

/** The attributes of a schema. */
export function readAttributes(node: Node): Attribute[] {
  const nodes = items(node);
  // Aggregations may name later attributes, so types are read first.
  const headers = nodes.map(header);
  return headers.map((attribute, position) => {
    const list = Fields.of(nodes[position] as Node, KEYS).get('aggregations');
    return list === undefined ? attribute : { ...attribute, aggregations: readAggregations(list, headers, position) };
  });
}

/** An attribute without its aggregations. */
function header(item: Node): Attribute {
  const fields = Fields.of(item, KEYS);
  const named = fields.required('type');
  const said = oneType(named, TYPES, 'one type, and `optional` if an event may lack it');
  const optional = said.optional || fields.or('optional', false, (node) => node.bool());
  if (said.type === undefined) throw named.expected('`integer`, `decimal`, `boolean` or `string`');
  const kind = kindOf(fields, said.type);
  const name = fields.required('name').name();
  return { name, kind, unit: fields.or('unit', '', (node) => node.text()), optional, aggregations: [] };
}

/** One word besides `optional`. */
function oneType(named: Node, words: readonly string[], expected: string): { type?: string; optional: boolean } {
  let type: string | undefined;
  let optional = false;
  for (const word of named.oneOrList()) {
    const found = words[word.word(words)];
    if (found === 'optional') optional = true;
    else if (type === undefined) type = found;
    else throw word.expected(expected);
  }
  return type === undefined ? { optional } : { type, optional };
}

function kindOf(fields: Fields, type: string): AttributeKind {
  if (type === 'integer' || type === 'decimal') return number(fields, type === 'decimal');
  if (type === 'boolean') {
    fields.refuse('maxBytes', 'type `boolean`');
    noBounds(fields, 'type `boolean`');
    return { kind: 'truth' };
  }
  const maxBytes = fields.or('maxBytes', DEFAULT_MAX_BYTES, (node) => Number(node.integer(1, MAX_BYTES)));
  noBounds(fields, 'type `string`');
  return { kind: 'text', maxBytes };
}

function number(fields: Fields, decimal: boolean): AttributeKind {
  fields.refuse('maxBytes', 'a number');
  let scale = 0;
  let [min, max] = [I32.least, I32.most];
  if (decimal) {
    scale = Number(fields.required('scale').integer(0, MAX_SCALE));
    min = fields.required('min').decimal(scale);
    max = fields.required('max').decimal(scale);
  } else {
    fields.refuse('scale', 'type `integer`; make it `decimal`');
    min = fields.or('min', min, (node) => node.decimal(0));
    max = fields.or('max', max, (node) => node.decimal(0));
  }
  if (min > max) throw (fields.get('min') ?? fields.node).error('MinAboveMax');
  return { kind: 'number', scale, min, max };
}

function noBounds(fields: Fields, other: string): void {
  for (const key of ['scale', 'min', 'max']) fields.refuse(key, other);
}

/** The metadata of a schema. */
export function readMetadata(node: Node): MetadataAttribute[] {
  return items(node).map((item) => {
    const fields = Fields.of(item, ['name', 'type', 'symbols', 'optional']);
    const name = fields.required('name').name();
    const kind = fields.required('type');
    const said = oneType(kind, ['string', 'enum', 'optional'], 'one type, and `optional` if a stream may lack it');
    const optional = said.optional || fields.or('optional', false, (found) => found.bool());
    if (said.type === undefined) throw kind.expected('`string` or `enum`');
    if (said.type === 'enum') return { name, symbols: symbols(fields.required('symbols')), optional };
    fields.refuse('symbols', 'type `string`; make it `enum`');
    return { name, symbols: [], optional };
  });
}

function symbols(node: Node): string[] {
  const found: string[] = [];
  for (const item of items(node)) {
    const symbol = item.text();
    if (found.includes(symbol)) throw item.error('DuplicateName', symbol);
    found.push(symbol);
  }
  return found;
}

/**
 * Reads an .avsc that an ordinary registry accepts. Properties are under the key `alpheus` of the record and of its
 * fields, which other Avro readers ignore. The result is the document of the equivalent YAML.
 */
import { Fields, Node } from '../document/node.js';
import { checkDecimal, checkField, checkRecord, FIELD, TYPE } from './avro-rules.js';

const RECORD = ['type', 'name', 'namespace', 'doc', 'aliases', 'fields', 'alpheus'];
const TYPES = 'int, long, boolean, string, a decimal of bytes or fixed, or a union of one of them with null';

/** The YAML form of an Avro record schema. */
export function avroDocument(root: Node): Node {
  const fields = Fields.of(root, RECORD);
  if (fields.required('type').text() !== 'record') throw fields.required('type').expected('"record"');
  checkRecord(fields);
  const entries = properties(fields);
  if (!entries.has('name')) entries.set('name', simpleName(fields.required('name')));
  const list = fields.required('fields');
  const nodes = list.list().map(field);
  if (!entries.has('streamAttributes')) entries.set('streamAttributes', new Node(list.at, { kind: 'items', nodes }));
  return new Node(root.at, { kind: 'entries', nodes: entries });
}

/** The properties under `alpheus`. */
function properties(fields: Fields): Map<string, Node> {
  return new Map(fields.get('alpheus')?.map() ?? []);
}

/** A record's name without its namespace. */
function simpleName(node: Node): Node {
  const name = node.text();
  return Node.plain(node.at, name.slice(name.lastIndexOf('.') + 1));
}

/** A field as the stream attribute of the YAML form. */
function field(node: Node): Node {
  const fields = Fields.of(node, FIELD);
  checkField(fields);
  const entries = properties(fields);
  for (const key of ['type', 'optional']) {
    const said = entries.get(key);
    if (said !== undefined) throw said.error('Conflict', key, 'the Avro type, which says it');
  }
  if (!entries.has('name')) entries.set('name', fields.required('name'));
  kind(fields.required('type'), entries);
  return new Node(node.at, { kind: 'entries', nodes: entries });
}

/** Adds the entries type, optional and scale that an Avro type implies. */
function kind(node: Node, entries: Map<string, Node>): void {
  if (node.value.kind === 'items') {
    const isNull = ({ value }: Node): boolean => value.kind === 'scalar' && value.text === 'null';
    const others = node.value.nodes.filter((item) => !isNull(item));
    const [only] = others;
    if (node.value.nodes.length !== 2 || others.length !== 1 || only === undefined || only.value.kind === 'items') {
      throw node.expected(TYPES);
    }
    kind(only, entries);
    entries.set('optional', Node.plain(node.at, 'true'));
  } else if (node.value.kind === 'entries') {
    logical(node, entries);
  } else {
    primitive(node, node.text(), entries);
  }
}

function primitive(node: Node, name: string, entries: Map<string, Node>): void {
  const word = name === 'int' || name === 'long' ? 'integer' : name;
  if (!['integer', 'boolean', 'string'].includes(word) || name === 'integer') throw node.expected(TYPES);
  entries.set('type', Node.plain(node.at, word));
}

function logical(node: Node, entries: Map<string, Node>): void {
  const fields = Fields.of(node, TYPE);
  const named = fields.required('type');
  const name = named.text();
  if (fields.get('logicalType') === undefined) {
    primitive(named, name, entries);
    return;
  }
  const bytes = name === 'bytes' || name === 'fixed';
  if (!bytes || fields.required('logicalType').text() !== 'decimal') throw node.expected(TYPES);
  checkDecimal(fields, name);
  entries.set('type', Node.plain(named.at, 'decimal'));
  if (!entries.has('scale')) entries.set('scale', fields.get('scale') ?? Node.plain(node.at, '0'));
}

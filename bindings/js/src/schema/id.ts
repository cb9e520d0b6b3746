/** A schema's id: the hash of the resolved schema in postcard, field by field in the order of the Rust types. */
import { type Bytes, fromHex } from '../bytes.js';
import { labelledHash } from '../crypto/hash.js';
import { Writer } from '../postcard.js';
import { type Aggregation, type AttributeKind, type Edges, OPTION_KINDS, type PolicyOption, type Schema } from './model.js';

const LABEL = 'alpheus/schema/v2';
const SIMPLE = { count: 0, sum: 1, mean: 2, variance: 3, any: 8, all: 9 } as const;
const known = new WeakMap<Schema, Bytes>();

/** The 32 bytes that keys, plans and annotations are bound to. Files that mean the same have the same id. */
export function schemaId(schema: Schema): Bytes {
  let id = known.get(schema);
  if (id === undefined) {
    id = labelledHash(LABEL, encoded(schema));
    known.set(schema, id);
  }
  return id.slice();
}

function encoded(schema: Schema): Bytes {
  const out = new Writer();
  out.text(schema.name).number(schema.version).number(schema.tick);
  out.number(schema.capacity.population).number(schema.capacity.events).bool(schema.sharedCount);
  out.list(schema.metadata, (item) => {
    out.text(item.name).list(item.symbols, (symbol) => out.text(symbol)).bool(item.optional);
  });
  out.list(schema.attributes, (attribute) => {
    out.text(attribute.name);
    kind(out, attribute.kind);
    out.text(attribute.unit).bool(attribute.optional);
    out.list(attribute.aggregations, (offered) => aggregation(out, offered));
  });
  out.list(schema.options, (item) => option(out, item));
  // Left out for events, as in every schema before there was a choice.
  if (schema.frames.kind === 'ticks') out.number(1).number(schema.frames.anchor);
  return out.bytes();
}

function kind(out: Writer, of: AttributeKind): void {
  if (of.kind === 'number') out.number(0).octet(of.scale).signed(of.min).signed(of.max);
  else if (of.kind === 'truth') out.number(1);
  else out.number(2).number(of.maxBytes);
}

function aggregation(out: Writer, offered: Aggregation): void {
  switch (offered.kind) {
    case 'histogram':
      out.number(4);
      edges(out, offered.edges);
      return;
    case 'regression':
      out.number(5).number(offered.x).bool(offered.rSquared);
      return;
    case 'by':
      out.number(6).number(offered.attribute);
      edges(out, offered.edges);
      out.octet(offered.order);
      return;
    case 'threshold':
      out.number(7).signed(offered.at);
      return;
    case 'sketch':
      out.number(10).octet(offered.depth).number(offered.width);
      return;
    default:
      out.number(SIMPLE[offered.kind]);
  }
}

function edges(out: Writer, of: Edges): void {
  if (of.kind === 'uniform') out.number(0).signed(of.lo).signed(of.width).number(of.count);
  else out.number(1).list(of.edges, (edge) => out.signed(edge));
}

function option(out: Writer, item: PolicyOption): void {
  const numbers = (all: readonly (number | bigint)[]): void => void out.list(all, (each) => out.number(each));
  out.text(item.name).number(OPTION_KINDS.indexOf(item.kind));
  numbers(item.attributes);
  numbers(item.windows);
  numbers(item.clients);
  out.list(item.namedClients, ([name, size]) => out.text(name).number(size));
  out.list(item.generalise, ({ attribute, width, edges }) => {
    out.number(attribute);
    if (edges.length === 0) out.number(0).signed(width);
    else out.number(1).list(edges, (edge) => out.signed(edge));
  });
  out.bool(item.budget !== undefined);
  if (item.budget !== undefined) {
    const { window, total, delta, unit, period } = item.budget;
    out.number(window).number(total).number(delta).number(unit);
    if (unit === 2) out.number(period);
  }
  out.list(item.to, (name) => out.text(name));
  out.number(item.alpha.numerator).number(item.alpha.denominator).number(item.colluders);
  out.number(item.dropout.numerator).number(item.dropout.denominator);
  out.number(item.missingTicks).bool(item.splitPopulations);
  out.list(item.trusted, (print) => out.raw(fromHex(print) as Bytes));
  // Left out where it is allowed, as in every schema before there was a choice.
  if (!item.verified) out.bool(false);
}

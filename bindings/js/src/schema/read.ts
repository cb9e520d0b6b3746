/** Reads a schema in the form of the paper's figure 3 (Zeph §4.1), and checks its layout. */
import { readJson } from '../document/json.js';
import { Fields, type Node } from '../document/node.js';
import { layoutOf, LayoutError } from '../layout/build.js';
import { readAttributes, readMetadata } from './attributes.js';
import { avroDocument } from './avro.js';
import { DAY, items, MAX_WORDS, U32 } from './limits.js';
import { folded, type Frames, type Schema } from './model.js';
import { readOptions } from './options.js';

const KEYS = [
  'name', 'version', 'tick', 'frames', 'anchor', 'capacity', 'sizes', 'sharedCount', 'metadataAttributes',
  'streamAttributes', 'streamPolicyOptions',
];
const TEN_SECONDS = 10_000_000;
const HOUR = DAY / 24;
const MILLISECOND = 1_000;
const MAX_EVENTS = 1n << 40n;

/** Reads an Avro record schema with Alpheus properties: it has the same id as the equivalent YAML. */
export function schemaFromAvsc(text: string): Schema {
  return schemaOf(avroDocument(readJson(text)));
}

/** Reads a schema that is written as JSON, with the keys of the YAML. */
export function schemaFromJson(text: string): Schema {
  return schemaOf(readJson(text));
}

/** The schema that a document is. */
export function schemaOf(root: Node): Schema {
  const fields = Fields.of(root, KEYS);
  const tick = fields.or('tick', TEN_SECONDS, readTick);
  const stream = fields.required('streamAttributes');
  const bare: Schema = {
    name: fields.required('name').name(),
    version: fields.or('version', 1n, (node) => node.integer(1, U32)),
    tick,
    capacity: fields.or('capacity', { population: 10_000n, events: 3_600n }, capacity),
    sharedCount: fields.or('sharedCount', true, (node) => node.bool()),
    metadata: fields.or('metadataAttributes', [], readMetadata),
    attributes: readAttributes(stream),
    options: [],
    frames: frames(fields, tick),
  };
  namesAreDistinct(fields, stream);
  const known = fields.or('sizes', sizes(undefined), sizes);
  const options = fields.or('streamPolicyOptions', [], (node) => readOptions(node, bare, known));
  const schema = { ...bare, options };
  fitsAVector(schema, stream);
  return schema;
}

/** At most a day. Otherwise a session could span a whole day between two others. */
function readTick(node: Node): number {
  const tick = node.duration();
  if (tick < MILLISECOND || tick > DAY) throw node.error('OutOfRange', '1ms', '1d');
  return tick;
}

function frames(fields: Fields, tick: number): Frames {
  if (fields.or('frames', 1, (node) => node.word(['events', 'ticks'])) === 0) {
    fields.refuse('anchor', '`frames: events`; remove it or use `frames: ticks`');
    return { kind: 'events' };
  }
  return { kind: 'ticks', anchor: fields.or('anchor', Math.ceil(HOUR / tick) * tick, (node) => anchor(node, tick)) };
}

/** At most a day, since a session ends with its day. */
function anchor(node: Node, tick: number): number {
  const found = node.duration();
  if (found < tick || found > DAY) throw node.error('OutOfRange', 'the tick', '1d');
  if (found % tick !== 0) throw node.error('NotMultipleOfTick');
  return found;
}

function capacity(node: Node): Schema['capacity'] {
  const fields = Fields.of(node, ['population', 'events', 'eventsPerSecond', 'window']);
  const population = fields.required('population').integer(1, U32);
  if (fields.get('eventsPerSecond') === undefined) {
    fields.refuse('window', '`events`, which is already of one window');
    return { population, events: fields.required('events').integer(1, MAX_EVENTS) };
  }
  fields.refuse('events', '`eventsPerSecond`');
  const rate = fields.required('eventsPerSecond');
  return { population, events: eventsAt(rate, fields.required('window').duration()) };
}

/** ⌈rate × window⌉, with the rate in millionths. */
function eventsAt(rate: Node, window: number): bigint {
  const micro = rate.decimal(6);
  const unit = 10n ** 12n;
  const events = ((micro > 0n ? micro : 0n) * BigInt(window) + unit - 1n) / unit;
  if (events <= 0n || events > MAX_EVENTS) throw rate.error('OutOfRange', '1 event', '2^40 events a window');
  return events;
}

function sizes(node: Node | undefined): Map<string, bigint> {
  const found = new Map([['small', 10n], ['medium', 100n], ['large', 1000n]]);
  for (const [name, size] of node?.map() ?? []) found.set(name, size.integer(1, U32));
  return found;
}

/** Queries use one namespace for metadata and stream attributes, so names are unique. */
function namesAreDistinct(fields: Fields, stream: Node): void {
  const metadata = fields.get('metadataAttributes');
  const seen = new Set<string>();
  for (const item of [...(metadata === undefined ? [] : items(metadata)), ...items(stream)]) {
    const name = item.map().get('name');
    if (name === undefined) continue;
    if (seen.has(folded(name.name()))) throw name.error('DuplicateName', name.name());
    seen.add(folded(name.name()));
  }
}

function fitsAVector(schema: Schema, stream: Node): void {
  try {
    layoutOf(schema);
  } catch (refused) {
    if (!(refused instanceof LayoutError)) throw refused;
    if (refused.code === 'TooManyWords') throw stream.error('TooManyWords', refused.number, MAX_WORDS);
    throw (stream.list()[refused.number] ?? stream).error('SumTooLarge');
  }
}

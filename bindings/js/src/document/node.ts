/** A node of a YAML or JSON document, with its position, and readers for its values. */
import { utf8 } from '../bytes.js';
import { DecimalError, parseExact } from './decimal.js';
import { parseDuration } from './duration.js';
import { type Fraction, parseFraction } from './fraction.js';
import type { Position } from './position.js';
import { DocumentError, type Problem } from './problem.js';

/** A value. Scalars keep their text, so `0.10` never passes through a float. */
export type Value =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'scalar'; readonly text: string; readonly plain: boolean }
  | { readonly kind: 'items'; readonly nodes: readonly Node[] }
  | { readonly kind: 'entries'; readonly nodes: ReadonlyMap<string, Node> };

const MAX_BYTES = 1 << 20;
const LONGEST_TEXT = 256;
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** A node of a document. */
export class Node {
  constructor(
    readonly at: Position,
    readonly value: Value,
  ) {}

  /** An unquoted scalar. */
  static plain(at: Position, text: string): Node {
    return new Node(at, { kind: 'scalar', text, plain: true });
  }

  /** An error about this node. */
  error(problem: Problem, ...details: readonly unknown[]): DocumentError {
    return new DocumentError(this.at, problem, ...details);
  }

  /** An error that says what is expected here. */
  expected(what: string): DocumentError {
    return this.error('Expected', what);
  }

  get isNothing(): boolean {
    return this.value.kind === 'nothing';
  }

  /** The entries of a map. */
  map(): ReadonlyMap<string, Node> {
    if (this.value.kind === 'entries') return this.value.nodes;
    throw this.expected('a map of keys and values');
  }

  /** The items of a list. */
  list(): readonly Node[] {
    if (this.value.kind === 'items') return this.value.nodes;
    throw this.expected('a list');
  }

  /** The items of a list, or a single item in place of a list. */
  oneOrList(): readonly Node[] {
    return this.value.kind === 'items' ? this.value.nodes : [this];
  }

  /** The text of a scalar. */
  text(): string {
    if (this.value.kind === 'scalar' && utf8(this.value.text).length <= LONGEST_TEXT) return this.value.text;
    throw this.expected('a text of at most 256 bytes');
  }

  /** An unquoted boolean. */
  bool(): boolean {
    const { value } = this;
    if (value.kind === 'scalar' && value.plain && (value.text === 'true' || value.text === 'false')) {
      return value.text === 'true';
    }
    throw this.expected('true or false');
  }

  /** A name that is valid in queries. */
  name(): string {
    const text = this.text();
    if (NAME.test(text)) return text;
    throw this.error('BadName');
  }

  /** A whole number in a range. */
  integer(least: bigint | number, most: bigint | number): bigint {
    const number = this.decimal(0);
    if (number < BigInt(least) || number > BigInt(most)) throw this.error('OutOfRange', least, most);
    return number;
  }

  /** A decimal as an integer in units of 10^-scale, without rounding. */
  decimal(scale: number): bigint {
    try {
      return parseExact(this.text(), scale);
    } catch (refused) {
      if (refused instanceof DecimalError) throw this.error('Number', refused.message);
      throw refused;
    }
  }

  /** One word of a list: its position there. */
  word(allowed: readonly string[]): number {
    const text = this.text();
    const position = allowed.indexOf(text);
    if (position < 0) throw this.error('UnknownWord', text, allowed.join(', '));
    return position;
  }

  /** A duration in microseconds. */
  duration(): number {
    const found = parseDuration(this.text());
    if (found === undefined) throw this.error('BadDuration');
    return found;
  }

  /** A fraction between 0 and 1 in lowest terms. */
  fraction(): Fraction {
    const found = parseFraction(this.text());
    if (found === undefined) throw this.error('BadFraction');
    return found;
  }
}

/** Refuses a document that is longer than any real schema. */
export function checkLength(text: string, at: Position): void {
  if (text.length > MAX_BYTES || utf8(text).length > MAX_BYTES) throw new DocumentError(at, 'TooLong', MAX_BYTES);
}

/** The entries of a map that has known keys only. */
export class Fields {
  private constructor(
    readonly node: Node,
    private readonly entries: ReadonlyMap<string, Node>,
  ) {}

  /** The map at a node. */
  static of(node: Node, known: readonly string[]): Fields {
    const entries = node.map();
    for (const [key, value] of entries) {
      if (!known.includes(key)) throw value.error('UnknownKey', key, known.join(', '));
    }
    return new Fields(node, entries);
  }

  /** The value of a key; undefined if it is missing or null. */
  get(key: string): Node | undefined {
    const found = this.entries.get(key);
    return found === undefined || found.isNothing ? undefined : found;
  }

  /** The value of a required key. */
  required(key: string): Node {
    const found = this.get(key);
    if (found === undefined) throw this.node.error('MissingKey', key);
    return found;
  }

  /** The value of a key as `read` reads it, or a default. */
  or<T>(key: string, missing: T, read: (node: Node) => T): T {
    const found = this.get(key);
    return found === undefined ? missing : read(found);
  }

  /** Refuses a key that cannot be used with something else. */
  refuse(key: string, other: string): void {
    const found = this.get(key);
    if (found !== undefined) throw found.error('Conflict', key, other);
  }
}

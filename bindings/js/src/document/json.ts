/** JSON text as a tree, with numbers as their digits. `JSON.parse` would round them, and drop keys. */
import { checkLength, Node, type Value } from './node.js';
import { itemOf, keyOf, type Position, ROOT } from './position.js';
import { DocumentError } from './problem.js';

const MAX_DEPTH = 120;
const TOKEN = /[ \t\n\r]*(?:([{}[\],:])|(true|false|null)|(-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"))/y;
const REST = /[ \t\n\r]*/y;

/** Reads one JSON document. */
export function readJson(text: string): Node {
  checkLength(text, ROOT);
  return new Reader(text).document();
}

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  document(): Node {
    if (this.isAtEnd()) throw new DocumentError(ROOT, 'Syntax', 'the document is empty');
    const node = this.node(this.token(), ROOT, 0);
    if (!this.isAtEnd()) throw this.broken('there is more text after the document');
    return node;
  }

  private isAtEnd(): boolean {
    REST.lastIndex = this.at;
    REST.exec(this.text);
    return REST.lastIndex === this.text.length;
  }

  /** The text may be a device's file, so the error does not quote it. */
  private broken(what = 'it is not valid JSON at this position'): DocumentError {
    const before = this.text.slice(0, this.at).split('\n');
    const column = (before[before.length - 1] ?? '').length + 1;
    return new DocumentError({ line: before.length, column, path: '' }, 'Syntax', what);
  }

  private token(): RegExpExecArray {
    TOKEN.lastIndex = this.at;
    const found = TOKEN.exec(this.text);
    if (found === null) throw this.broken();
    this.at = TOKEN.lastIndex;
    return found;
  }

  private node(token: RegExpExecArray, at: Position, depth: number): Node {
    if (depth > MAX_DEPTH) throw new DocumentError(at, 'TooDeep');
    return new Node(at, this.value(token, at, depth));
  }

  private value([, mark, word, number, point, exponent, quoted]: RegExpExecArray, at: Position, depth: number): Value {
    if (mark === '[') return { kind: 'items', nodes: this.items(at, depth) };
    if (mark === '{') return { kind: 'entries', nodes: this.entries(at, depth) };
    if (word !== undefined) {
      return word === 'null' ? { kind: 'nothing' } : { kind: 'scalar', text: word, plain: true };
    }
    if (number !== undefined) {
      const exact = point === undefined && exponent === undefined;
      const value = exact ? BigInt(number) : 0n;
      // Most readers turn a number beyond 64 bits into a float.
      if (!exact || value >= 1n << 64n || value < -(1n << 63n)) throw new DocumentError(at, 'InexactNumber');
      return { kind: 'scalar', text: value.toString(), plain: true };
    }
    if (quoted !== undefined) return { kind: 'scalar', text: this.unquoted(quoted), plain: false };
    throw this.broken();
  }

  private unquoted(quoted: string): string {
    const text = JSON.parse(quoted) as string;
    // A lone half of a surrogate pair is no text.
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) throw this.broken();
    return text;
  }

  private items(at: Position, depth: number): readonly Node[] {
    const nodes: Node[] = [];
    let token = this.token();
    if (token[1] === ']') return nodes;
    for (;;) {
      nodes.push(this.node(token, itemOf(at, nodes.length), depth + 1));
      const next = this.token()[1];
      if (next === ']') return nodes;
      if (next !== ',') throw this.broken();
      token = this.token();
    }
  }

  private entries(at: Position, depth: number): ReadonlyMap<string, Node> {
    const nodes = new Map<string, Node>();
    let token = this.token();
    if (token[1] === '}') return nodes;
    for (;;) {
      if (token[6] === undefined) throw this.broken();
      const key = this.unquoted(token[6]);
      if (nodes.has(key)) throw new DocumentError(keyOf(at, key), 'DuplicateKey', key);
      if (this.token()[1] !== ':') throw this.broken();
      nodes.set(key, this.node(this.token(), keyOf(at, key), depth + 1));
      const next = this.token()[1];
      if (next === '}') return nodes;
      if (next !== ',') throw this.broken();
      token = this.token();
    }
  }
}

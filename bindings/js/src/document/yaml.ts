/** YAML text as a tree of plain lists, maps and scalars. */
import {
  Composer,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  Parser,
  Scalar,
  type YAMLMap,
} from 'yaml';
import { checkLength, Node, type Value } from './node.js';
import { itemOf, keyOf, type Position, ROOT } from './position.js';
import { DocumentError } from './problem.js';

const MAX_DEPTH = 24;

/** Reads one YAML document. */
export function readYaml(text: string): Node {
  checkLength(text, ROOT);
  return new Reader().document(text);
}

class Reader {
  private readonly lines = new LineCounter();

  document(text: string): Node {
    const tokens = new Parser(this.lines.addNewLine).parse(text);
    const composer = new Composer({ schema: 'failsafe', uniqueKeys: false, prettyErrors: false });
    let root: Node | undefined;
    for (const document of composer.compose(tokens)) {
      const [error] = document.errors;
      if (error !== undefined) {
        throw new DocumentError(this.place(error.pos[0], ROOT), 'Syntax', worded(error.code));
      }
      if (root !== undefined) throw new DocumentError(this.place(document.range[0], ROOT), 'SecondDocument');
      root = this.node(document.contents, ROOT, 0);
    }
    if (root === undefined || (root.isNothing && text.trim() === '')) throw new DocumentError(ROOT, 'Empty');
    return root;
  }

  private node(node: ParsedNode | null, outer: Position, depth: number): Node {
    if (node === null) return new Node(outer, { kind: 'nothing' });
    const at = this.place(node.range[0], outer);
    refuseAlias(node, at);
    if (isScalar(node)) return new Node(at, scalar(node as Scalar));
    if (depth >= MAX_DEPTH) throw new DocumentError(at, 'TooDeep');
    if (isMap(node)) return new Node(at, { kind: 'entries', nodes: this.entries(node as YAMLMap.Parsed, at, depth) });
    if (!isSeq(node)) throw new DocumentError(at, 'Syntax', 'expected a list, a map or a text');
    const items = (node.items as ParsedNode[]).map((item, index) => this.node(item, itemOf(at, index), depth + 1));
    return new Node(at, { kind: 'items', nodes: items });
  }

  private entries(map: YAMLMap.Parsed, at: Position, depth: number): ReadonlyMap<string, Node> {
    const nodes = new Map<string, Node>();
    for (const pair of map.items) {
      const key = this.key(pair.key as ParsedNode | null, at, nodes);
      nodes.set(key, this.node(pair.value as ParsedNode | null, keyOf(at, key), depth + 1));
    }
    return nodes;
  }

  private key(node: ParsedNode | null, outer: Position, before: ReadonlyMap<string, Node>): string {
    const at = node === null ? { ...outer, path: '' } : this.place(node.range[0], ROOT);
    if (node !== null) refuseAlias(node, at);
    const key = isScalar(node) ? String(node.value ?? '') : '';
    if (key === '' || key === '<<') throw new DocumentError(at, 'BadKey');
    if (before.has(key)) throw new DocumentError(at, 'DuplicateKey', key);
    return key;
  }

  private place(offset: number, outer: Position): Position {
    const { line, col } = this.lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1), path: outer.path };
  }
}

function refuseAlias(node: ParsedNode, at: Position): void {
  if (isAlias(node) || node.tag !== undefined || node.anchor !== undefined) throw new DocumentError(at, 'Alias');
}

function scalar(node: Scalar): Value {
  const plain = node.type === undefined || node.type === Scalar.PLAIN;
  const text = String(node.value ?? '');
  return plain && (text === '' || text === '~' || text === 'null')
    ? { kind: 'nothing' }
    : { kind: 'scalar', text, plain };
}

/** The library's code in words: its own message may quote the document. */
function worded(code: string): string {
  return code.toLowerCase().replaceAll('_', ' ');
}

/** A position in a document: line and column from 1 (line 0 if unknown), and the keys from the root. */
export interface Position {
  readonly line: number;
  readonly column: number;
  readonly path: string;
}

/** The document as a whole. */
export const ROOT: Position = { line: 0, column: 0, path: '' };

/** The value of a key below a position. */
export function keyOf(at: Position, key: string): Position {
  return { ...at, path: at.path === '' ? key : `${at.path}.${key}` };
}

/** An item of a list at a position. */
export function itemOf(at: Position, index: number): Position {
  return { ...at, path: `${at.path}[${index}]` };
}

/** A position in words. */
export function shown({ line, column, path }: Position): string {
  if (line === 0) return path === '' ? '$' : `$.${path}`;
  const place = `line ${line}, column ${column}`;
  return path === '' ? place : `${place} (${path})`;
}

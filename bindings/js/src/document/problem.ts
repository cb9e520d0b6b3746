/** What is wrong at one position of a document, with how to fix it. The names are those of the vectors. */
import { AlpheusError, fill } from '../errors.js';
import { type Position, shown } from './position.js';

const WORDS = {
  Syntax: 'cannot be parsed: {0}',
  Empty: 'the document is empty; start from one of the examples',
  SecondDocument: 'a second document starts here; use one file per document',
  Alias: 'anchors, aliases and tags are not supported; write the value out',
  TooDeep: 'nested too deeply; flatten the document',
  TooLong: 'the document is longer than {0} bytes, the limit',
  BadKey: 'a key must be a plain word, not empty, a list or a map',
  DuplicateKey: 'the key `{0}` appears twice; keep one of the two',
  UnknownKey: 'unknown key `{0}`; the keys allowed here are {1}',
  MissingKey: '`{0}` is missing; add `{0}: …`',
  Conflict: '`{0}` cannot be used with {1}',
  Expected: 'expected {0}',
  UnknownWord: '`{0}` is not one of {1}',
  Number: '{0}',
  OutOfRange: 'must be between {0} and {1}',
  InexactNumber:
    'a number with a fraction or exponent must be quoted, as in "0.5", so that it is read exactly',
  BadDuration: 'not a duration; write 10s, 5min, 1hr, 1d, 500ms or PT1H',
  BadFraction: 'not a fraction between 0 and 1; write 1/3 or 0.2',
  BadFingerprint: "not a controller's fingerprint; write its 64 hexadecimal digits",
  BadName: 'not a valid name; use 1 to 64 letters, digits, `_` or `-`, and start with a letter or `_`',
  DuplicateName: 'the name `{0}` is used twice (case is ignored, and `-` equals `_`); rename one of the two',
  UnknownAttribute: 'the schema has no stream attribute `{0}`; check the name or declare it',
  EmptyList: 'the list is empty; add at least one item',
  TooMany: 'too many items; at most {0} are allowed',
  SplitPopulations:
    'a window has one population, and only one set of it is ever opened, so it cannot be split; remove `splitPopulations`',
  MinAboveMax: '`min` is greater than `max`; swap them',
  EdgesNotAscending: 'edges must be in strictly ascending order',
  WrongType: 'an attribute of type {0} does not support `{1}`',
  SumTooLarge:
    'the sum of this attribute over a window may not fit in two 64-bit words; narrow `min` and `max`, or lower `scale` or `capacity`',
  NotMultipleOfTick: "not a multiple of the schema's tick",
  OffGrid: 'these buckets do not lie on the grid of `{0}`; use multiples of its width or a subset of its edges',
  NothingToGeneralise:
    '`{0}` has no histogram and no statistics by its buckets, so that nothing of it could be released',
  TooManyWords: 'an event would take {0} words, at most {1} fit; use fewer bins',
} as const;

/** The kind of a problem. */
export type Problem = keyof typeof WORDS;

/** An invalid schema, and where the problem is. */
export class DocumentError extends AlpheusError<Problem> {
  /** The position of the problem. */
  readonly at: Position;

  constructor(at: Position, problem: Problem, ...details: readonly unknown[]) {
    super(problem, `${shown(at)}: ${fill(WORDS[problem], details)}`);
    this.at = at;
  }
}

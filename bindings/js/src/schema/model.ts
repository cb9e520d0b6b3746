/** The resolved schema: what a stream holds and what its owners may offer. */
import type { Fraction } from '../document/fraction.js';

/** The values of an attribute. Numbers are scaled: the integer value × 10^scale in min..=max. */
export type AttributeKind =
  | { readonly kind: 'number'; readonly scale: number; readonly min: bigint; readonly max: bigint }
  | { readonly kind: 'truth' }
  | { readonly kind: 'text'; readonly maxBytes: number };

/** Lower edges of bins, in scaled values. The end bins are open. */
export type Edges =
  | { readonly kind: 'uniform'; readonly lo: bigint; readonly width: bigint; readonly count: number }
  | { readonly kind: 'explicit'; readonly edges: readonly bigint[] };

/** An encoding that an attribute offers. Attributes are positions in the schema. */
export type Aggregation =
  | { readonly kind: 'count' | 'sum' | 'mean' | 'variance' | 'any' | 'all' }
  | { readonly kind: 'histogram'; readonly edges: Edges }
  | { readonly kind: 'regression'; readonly x: number; readonly rSquared: boolean }
  | { readonly kind: 'by'; readonly attribute: number; readonly edges: Edges; readonly order: number }
  | { readonly kind: 'threshold'; readonly at: bigint }
  | { readonly kind: 'sketch'; readonly depth: number; readonly width: number };

/** A private attribute of an event. */
export interface Attribute {
  readonly name: string;
  readonly kind: AttributeKind;
  /** For people. */
  readonly unit: string;
  /** Whether an event may lack it. */
  readonly optional: boolean;
  readonly aggregations: readonly Aggregation[];
}

/** A public, static fact about a stream. Without symbols any text is allowed. */
export interface MetadataAttribute {
  readonly name: string;
  readonly symbols: readonly string[];
  readonly optional: boolean;
}

/** The finest buckets in which an attribute may be released: of one width (edges empty), or with edges. */
export interface Generalise {
  readonly attribute: number;
  readonly width: bigint;
  readonly edges: readonly bigint[];
}

/** The privacy budget of one owner for one attribute: ε in millionths, δ in units of 10^-18. */
export interface Budget {
  readonly window: bigint;
  readonly total: bigint;
  readonly delta: bigint;
  /** 0: one event; 1: a person's window; 2: a person's period, of so many microseconds. */
  readonly unit: number;
  readonly period: number;
}

/** What an option allows. */
export const OPTION_KINDS = ['private', 'public', 'stream-aggregate', 'aggregate', 'dp-aggregate'] as const;

/** One policy that owners may choose. A producer needs it for the schema's id, and for what shares a word. */
export interface PolicyOption {
  readonly name: string;
  readonly kind: (typeof OPTION_KINDS)[number];
  /** Positions of attributes, ascending. */
  readonly attributes: readonly number[];
  /** In microseconds, ascending. */
  readonly windows: readonly number[];
  readonly clients: readonly bigint[];
  readonly namedClients: readonly (readonly [string, bigint])[];
  readonly generalise: readonly Generalise[];
  readonly budget: Budget | undefined;
  readonly to: readonly string[];
  readonly alpha: Fraction;
  readonly colluders: bigint;
  readonly dropout: Fraction;
  readonly missingTicks: bigint;
  readonly splitPopulations: boolean;
  /** Fingerprints of controllers in lower-case hexadecimal digits, ascending. */
  readonly trusted: readonly string[];
  /** Whether it allows plans whose members decide what a row says. */
  readonly verified: boolean;
}

/** What a device sends: a frame for each event, or one a tick with sums that start again at each anchor. */
export type Frames = { readonly kind: 'events' } | { readonly kind: 'ticks'; readonly anchor: number };

/** A schema whose names, numbers and bounds have all been checked. Times are in microseconds. */
export interface Schema {
  readonly name: string;
  readonly version: bigint;
  readonly tick: number;
  /** Most streams in a window, and most events of one of them. */
  readonly capacity: { readonly population: bigint; readonly events: bigint };
  readonly sharedCount: boolean;
  readonly metadata: readonly MetadataAttribute[];
  readonly attributes: readonly Attribute[];
  readonly options: readonly PolicyOption[];
  readonly frames: Frames;
}

/** A name in the form for comparison: queries do not tell case apart, or `-` from `_`. */
export function folded(name: string): string {
  return name.toLowerCase().replaceAll('-', '_');
}

/** Position of an attribute by its name, or −1. */
export function positionOf(attributes: readonly Attribute[], wanted: string): number {
  const name = folded(wanted);
  return attributes.findIndex((attribute) => folded(attribute.name) === name);
}

/** Frames of schemas with a frame for each event. crates/encrypted-stream/src/frame.rs has the table. */
import { type Bytes, readU64 } from '../bytes.js';
import { link } from '../crypto/hash.js';
import { AlpheusError, fill } from '../errors.js';
import { LIMIT } from './time.js';

const WORDS = {
  Empty: 'the frame is empty',
  UnknownKind: 'unknown frame kind {0}, expected 16 to 19; the sender may run a newer version',
  Truncated: 'the frame ends after {0} bytes, within its header of {1} bytes',
  TrailingBytes: '{0} bytes follow an opening frame, which has no ciphertext',
  PartialWord: 'the ciphertext has {0} bytes, which is not a whole number of 8-byte words',
  NoWords: 'the frame has no ciphertext; even an empty event has a check word',
  TooManyWords: 'the event has {0} words; the maximum is 8192',
  TimeBeyondLimit: 'the time {0} µs is not below 2^52',
  TimesNotAscending: "the event's time {0} µs is not after its predecessor's, {1} µs",
} as const;

/** Bytes that are no frame. It contains nothing of them but times and lengths. */
export class FrameError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

/** The kinds with the lengths of their headers, by their first bytes. */
const HEADS: Readonly<Record<number, number>> = { 0x10: 33, 0x11: 25, 0x12: 49, 0x13: 49 };
const MAX_WORDS = 8192;

/** The first byte of a kind of frame. */
export const Kind = { opening: 0x10, data: 0x11, border: 0x12, closing: 0x13 } as const;

/** What a frame says. */
export interface Frame {
  readonly kind: number;
  readonly session: bigint;
  readonly t: number;
  /** The ciphertext; empty for an opening. */
  readonly words: Bytes;
  /** The event's part of a window's link digest. */
  readonly digest: bigint;
}

/** Reads a frame, and checks its form. */
export function parseFrame(bytes: Bytes): Frame {
  const kind = bytes[0];
  if (kind === undefined) throw new FrameError('Empty');
  const head = HEADS[kind];
  if (head === undefined) throw new FrameError('UnknownKind', kind);
  const need = (length: number): void => {
    if (bytes.length < length) throw new FrameError('Truncated', bytes.length, head);
  };
  // Times are checked before missing bytes behind them, as in the Rust implementation.
  need(17);
  const session = readU64(bytes.subarray(1), true);
  const t = readU64(bytes.subarray(9), true);
  if (t >= BigInt(LIMIT)) throw new FrameError('TimeBeyondLimit', t);
  if (kind === Kind.opening) {
    need(head);
    if (bytes.length > head) throw new FrameError('TrailingBytes', bytes.length - head);
    return { kind, session, t: Number(t), words: bytes.slice(head), digest: 0n };
  }
  need(25);
  const previous = readU64(bytes.subarray(17), true);
  if (previous >= t) throw new FrameError('TimesNotAscending', t, previous);
  need(head);
  checkWords(bytes.length - head);
  const digest = BigInt.asUintN(64, link(session, Number(t)) - link(session, Number(previous)));
  return { kind, session, t: Number(t), words: bytes.slice(head), digest };
}

function checkWords(length: number): void {
  if (length % 8 !== 0) throw new FrameError('PartialWord', length);
  if (length === 0) throw new FrameError('NoWords');
  if (length / 8 > MAX_WORDS) throw new FrameError('TooManyWords', length / 8);
}

/** A frame's header, and room for so many words. */
export function makeFrame(
  kind: number,
  session: bigint,
  t: number,
  more: { readonly previous?: number; readonly count?: number; readonly tag?: Bytes },
  words: number,
): { frame: Bytes; head: number } {
  const head = HEADS[kind] as number;
  const frame = new Uint8Array(head + 8 * words);
  const view = new DataView(frame.buffer);
  frame[0] = kind;
  view.setBigUint64(1, session, true);
  view.setBigUint64(9, BigInt(t), true);
  if (more.previous !== undefined) view.setBigUint64(17, BigInt(more.previous), true);
  if (more.count !== undefined) view.setBigUint64(25, BigInt(more.count), true);
  if (more.tag !== undefined) frame.set(more.tag, head - more.tag.length);
  return { frame, head };
}

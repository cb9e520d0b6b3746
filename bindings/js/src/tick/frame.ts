/** Tick frames on the wire. The stream is the record's key and not in the frame. Numbers and words are little-endian. */
import { type Bytes, isEqual, readU64 } from '../bytes.js';
import { TagKey } from '../crypto/keys.js';
import { SIGNATURE } from '../crypto/sign.js';
import { AlpheusError, fill } from '../errors.js';
import { MAX_WORDS } from '../schema/limits.js';
import { LIMIT } from '../stream/time.js';
import { type Claim, ClaimKind, isGap, NO_ROOT } from './claim.js';

const WORDS = {
  Empty: 'the frame is empty',
  UnknownKind: 'unknown frame kind {0}, expected 32 to 36; the sender may run another version',
  Truncated: 'the frame has {0} bytes; this kind has at least {1}',
  TooLong: 'the frame has {0} bytes; this kind has {1}',
  PartialWord: 'the ciphertext has {0} bytes, which is not a whole number of 8-byte words',
  NoWords: 'the frame has no ciphertext; even an empty tick has a check word',
  TooManyWords: 'the tick has {0} words; the maximum is 8192',
  TimeBeyondLimit: 'the time {0} µs is not below 2^52',
  Order: 'the frame covers no time: it ends at {0} µs and starts at {1} µs',
  PreviousFlag: 'the flag of the previous session is {0}; expected 1, or 0 with zeros after it',
} as const;

/** Bytes that are no tick frame. It contains nothing of them but times and lengths. */
export class TickFrameError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

const VERSION = 0x20;
const TAG = 16;
const TICK_HEAD = 57;
const GAP_HEAD = 65;
const FRAME_LABEL = 'alpheus/frame/v2';
/** Bytes of a sealed session key. */
export const SEALED = 80;
/** Bytes of an opening up to the sealed key, and up to the signature. */
export const OPENING = { context: 82, signed: 82 + SEALED + 32, length: 82 + SEALED + 32 + SIGNATURE + TAG };

/** The session before one, as a device remembers it: its number, and its last border. */
export interface Previous {
  readonly session: bigint;
  readonly last: number;
}

/** The key that a session's device shares with the service alone. It authenticates frames and opens nothing. */
export class SessionKey {
  readonly #key: TagKey;
  readonly #stream: Bytes;

  private constructor(key: TagKey, stream: Bytes) {
    this.#key = key;
    this.#stream = stream;
  }

  /** From 32 bytes, which may be wiped afterwards. */
  static async of(key: Bytes, stream: Bytes): Promise<SessionKey> {
    return new SessionKey(await TagKey.of(key), stream.slice());
  }

  /** Completes a frame: writes the MAC of what is before the room for it. */
  async finish(frame: Bytes): Promise<Bytes> {
    const length = frame.length - TAG;
    frame.set(await this.#key.tag(FRAME_LABEL, this.#stream, frame.subarray(0, length)), length);
    return frame;
  }

  /** Whether the session's device sent a frame for this stream. */
  async verifies(frame: Bytes): Promise<boolean> {
    const length = frame.length - TAG;
    if (length < 0) return false;
    const tag = await this.#key.tag(FRAME_LABEL, this.#stream, frame.subarray(0, length));
    return isEqual(tag, frame.subarray(length));
  }
}

/** A tick or gap frame, with room for the MAC of its session's key. */
export function makeTickFrame(claim: Claim, words: Uint8Array): Bytes {
  const gap = isGap(claim.kind);
  const head = gap ? GAP_HEAD : TICK_HEAD;
  const frame = new Uint8Array(head + (gap ? 0 : words.length) + TAG);
  const view = new DataView(frame.buffer);
  frame[0] = VERSION + claim.kind;
  view.setBigUint64(1, claim.session, true);
  let at = 9;
  for (const number of [...(gap ? [BigInt(claim.from)] : []), BigInt(claim.to), claim.maskedCount]) {
    view.setBigUint64(at, number, true);
    at += 8;
  }
  frame.set(claim.root, at);
  frame.set(claim.tag, at + claim.root.length);
  if (!gap) frame.set(words, head);
  return frame;
}

/** The start of an opening, up to the sealed key. */
export function openingHead(claim: Claim, ingest: Bytes, previous: Previous | undefined): Bytes {
  const frame = new Uint8Array(OPENING.length);
  const view = new DataView(frame.buffer);
  frame[0] = VERSION + ClaimKind.opening;
  view.setBigUint64(1, claim.session, true);
  view.setBigUint64(9, BigInt(claim.to), true);
  frame.set(claim.tag, 17);
  frame.set(ingest, 33);
  if (previous !== undefined) {
    frame[65] = 1;
    view.setBigUint64(66, previous.session, true);
    view.setBigUint64(74, BigInt(previous.last), true);
  }
  return frame;
}

/** A frame as its bytes say. Their form alone is checked. */
export interface TickFrame {
  readonly claim: Claim;
  /** Whether it opens a session. */
  readonly opening: boolean;
  /** The session before, which an opening may name. */
  readonly previous: Previous | undefined;
  /** The ciphertext; empty for gaps and openings. */
  readonly words: Bytes;
}

/** Reads a frame of a schema with this tick. */
export function parseTickFrame(bytes: Bytes, tick: number): TickFrame {
  const [first] = bytes;
  if (first === undefined) throw new TickFrameError('Empty');
  const kind = first - VERSION;
  if (kind < ClaimKind.opening || kind > ClaimKind.closingGap) throw new TickFrameError('UnknownKind', first);
  if (kind === ClaimKind.opening) return parseOpening(bytes);
  const gap = isGap(kind);
  const least = (gap ? GAP_HEAD : TICK_HEAD) + TAG;
  if (bytes.length < least) throw new TickFrameError('Truncated', bytes.length, least);
  const session = readU64(bytes.subarray(1), true);
  const at = timeAt(bytes, 9);
  const from = gap ? at : Math.max(at - tick, 0);
  const to = gap ? timeAt(bytes, 17) : at;
  if (from >= to) throw new TickFrameError('Order', to, from);
  const next = gap ? 25 : 17;
  const maskedCount = readU64(bytes.subarray(next), true);
  const root = bytes.slice(next + 8, next + 24);
  const tag = bytes.slice(next + 24, next + 40);
  checkWords(gap, bytes.length, least);
  const words = bytes.slice(least - TAG, bytes.length - TAG);
  return { claim: { kind, session, from, to, maskedCount, root, tag }, opening: false, previous: undefined, words };
}

function parseOpening(bytes: Bytes): TickFrame {
  const { length } = OPENING;
  if (bytes.length < length) throw new TickFrameError('Truncated', bytes.length, length);
  if (bytes.length > length) throw new TickFrameError('TooLong', bytes.length, length);
  const session = readU64(bytes.subarray(1), true);
  const at = timeAt(bytes, 9);
  const before = { session: readU64(bytes.subarray(66), true), last: timeAt(bytes, 74) };
  const flag = bytes[65] as number;
  const isNone = flag === 0 && before.session === 0n && before.last === 0;
  if (flag !== 1 && !isNone) throw new TickFrameError('PreviousFlag', flag);
  const tag = bytes.slice(17, 33);
  const claim = { kind: ClaimKind.opening, session, from: at, to: at, maskedCount: 0n, root: NO_ROOT, tag };
  return { claim, opening: true, previous: isNone ? undefined : before, words: new Uint8Array(0) };
}

function timeAt(bytes: Bytes, at: number): number {
  const time = readU64(bytes.subarray(at), true);
  if (time >= BigInt(LIMIT)) throw new TickFrameError('TimeBeyondLimit', time);
  return Number(time);
}

function checkWords(gap: boolean, length: number, least: number): void {
  const ciphertext = length - least;
  if (gap) {
    if (ciphertext > 0) throw new TickFrameError('TooLong', length, least);
  } else if (ciphertext % 8 !== 0) {
    throw new TickFrameError('PartialWord', ciphertext);
  } else if (ciphertext === 0) {
    throw new TickFrameError('NoWords');
  } else if (ciphertext / 8 > MAX_WORDS) {
    throw new TickFrameError('TooManyWords', ciphertext / 8);
  }
}


/** What a device and its service say to each other: crates/streams/src/wire.rs in postcard. */
import { type Bytes, isEqual } from '../bytes.js';
import { PostcardError, Reader, Writer } from '../postcard.js';

/** Frames of one stream, in the order in which they were made. */
export interface Upload {
  readonly stream: Bytes;
  /** Random, drawn when the outbox was made. */
  readonly outbox: Bytes;
  /** Counts the uploads of an outbox, from 1. */
  readonly number: bigint;
  readonly frames: readonly Bytes[];
}

/** What became of an upload. */
export type UploadStatus =
  | { readonly kind: 'taken' | 'not-yours' | 'malformed' | 'withdrawn' }
  | { readonly kind: 'before'; readonly last: bigint }
  | { readonly kind: 'missing'; readonly next: bigint };

/** Why a frame that was taken counts for nothing. */
export interface RefusedFrame {
  readonly session: bigint;
  readonly reason: string;
}

/** The answer to uploads, once they are durable. */
export interface Receipt {
  readonly uploads: readonly UploadStatus[];
  readonly refused: readonly RefusedFrame[];
}

const REASONS = [
  'unknown-session',
  'unknown-ingest-key',
  'unknown-device',
  'session-ended',
  'late',
  'bad-mac',
  'conflicting-frame',
];
/** Reasons that a new session heals. */
const HEALED = new Set(REASONS.slice(0, 4));

/** Whether a new session heals it. */
export function heals({ reason }: RefusedFrame): boolean {
  return HEALED.has(reason);
}

/** The body of a request with uploads. */
export function encodeUploads(uploads: readonly Upload[]): Bytes {
  const out = new Writer();
  out.list(uploads, ({ stream, outbox, number, frames }) => {
    out.raw(stream).raw(outbox).number(number);
    out.list(frames, (frame) => out.sized(frame));
  });
  return out.bytes();
}

/** Fewest bytes of a frame, as the service has it, and most uploads of one request: a device sends one. */
const MIN_FRAME = 25;
const MAX_UPLOADS = 64;

/** The streams that such a body is about: a relay looks at them. Frames are passed over: nothing of them is kept. */
export function streamsOf(body: Bytes): Bytes[] {
  const reader = new Reader(body);
  const count = reader.size();
  if (count > MAX_UPLOADS) throw new PostcardError('there are too many uploads');
  const found: Bytes[] = [];
  while (found.length < count) {
    found.push(reader.raw(16));
    reader.skip(16);
    reader.number();
    for (let left = reader.size(); left > 0; left--) {
      const length = reader.size();
      if (length < MIN_FRAME) throw new PostcardError('a frame is too short to be one');
      reader.skip(length);
    }
  }
  if (!reader.isAtEnd) throw new PostcardError('there is more after the uploads');
  return found;
}

/** Reads an answer. Frames of other streams are left out. */
export function decodeReceipt(body: Bytes, stream: Bytes): Receipt {
  const reader = new Reader(body);
  const uploads = reader.list((): UploadStatus => {
    switch (Number(reader.number())) {
      case 0:
        return { kind: 'taken' };
      case 1:
        return { kind: 'before', last: reader.number() };
      case 2:
        return { kind: 'missing', next: reader.number() };
      case 3:
        return { kind: 'not-yours' };
      case 4:
        return { kind: 'malformed' };
      case 5:
        return { kind: 'withdrawn' };
      default:
        throw new PostcardError('an unknown outcome of an upload');
    }
  });
  const refused = reader.list(() => {
    const own = isEqual(reader.raw(16), stream);
    const session = reader.number();
    const reason = Number(reader.number());
    return { own, session, reason: REASONS[reason] ?? shortName(reader.text()) };
  });
  if (!reader.isAtEnd) throw new PostcardError('there is more after the receipt');
  return { uploads, refused: refused.filter(({ own }) => own) };
}

/** A rule or reason that the service names, as far as it is a short name: no other text of a peer is shown. */
export function shortName(text: string): string {
  return text.slice(0, 64).replace(/[^a-z0-9-]/gi, '');
}

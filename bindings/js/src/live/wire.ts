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

/** The streams that such a body is about: a relay looks at them. */
export function streamsOf(body: Bytes): Bytes[] {
  const reader = new Reader(body);
  const found = reader.list(() => {
    const stream = reader.raw(16);
    reader.raw(16);
    reader.number();
    reader.list(() => reader.sized());
    return stream;
  });
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
    return { own, session, reason: REASONS[reason] ?? reader.text() };
  });
  if (!reader.isAtEnd) throw new PostcardError('there is more after the receipt');
  return { uploads, refused: refused.filter(({ own }) => own) };
}

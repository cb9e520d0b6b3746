/** Errors of a live stream. */
import { AlpheusError, fill } from '../errors.js';

const WORDS = {
  InUse: 'this stream is open elsewhere (another tab, or another part of this program); close it there first',
  Closed: 'the stream is closed',
  Lost: 'events are in no window: their session ended before the service had the frame of their tick, or the service refused it; `status` says how many, and its reasons',
  Refused: 'the service refuses this device (HTTP {0}: {1}); nothing more is sent',
  Withdrawn: 'the owner has withdrawn the stream for good, and the service accepts nothing more of it; to send again, the owner adds another stream',
  Full: 'more frames wait than may wait; the service has not been reached for long',
  BadAnswer: 'the service answered with what this version does not know',
} as const;

/** Why a stream does not do what it was asked. */
export class StreamError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

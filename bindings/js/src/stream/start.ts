/** When sessions may open. */
import { ProducerError } from './error.js';
import { ceiling, DAY, floor, LIMIT } from './time.js';

/**
 * What a producer knows about its stream's past. `first`: the stream never had a session, and its first may open in the
 * past. Else the producer's clock, at whose next tick a session opens at the earliest.
 */
export type Start = 'first' | { readonly now: number };

/** Checks that a session may open at a tick. */
export function admit(start: Start, at: number, tick: number, state: { opened: boolean; online: boolean }): void {
  if (state.online) throw new ProducerError('Ended');
  if (at % tick !== 0) throw new ProducerError('NotATick', at, tick);
  // Room for the border that closes the session.
  if (!(at >= 0 && at + tick < LIMIT)) throw new ProducerError('BeyondLimit', at);
  if (start === 'first') {
    if (state.opened) throw new ProducerError('NotTheFirst');
  } else if (at < ceiling(start.now, tick)) {
    throw new ProducerError('BackDated', at, ceiling(start.now, tick));
  }
}

/** Checks that the cipher can encrypt such vectors, with borders at this distance. */
export function checkShape(tick: number, words: number): void {
  if (!(words >= 1 && words <= 8192)) throw new ProducerError('Words', words);
  if (!(tick >= 2 && tick <= DAY)) throw new ProducerError('Tick', tick);
}

/** Checks that there is room for the border after a time. */
export function roomAfter(t: number, tick: number): void {
  if (!(t >= 0 && t < LIMIT && floor(t, tick) + tick < LIMIT)) throw new ProducerError('BeyondLimit', t);
}

/** Random bytes as a session's number. */
export function numberOf(random: (out: Uint8Array<ArrayBuffer>) => void): bigint {
  const drawn = new Uint8Array(8);
  random(drawn);
  return new DataView(drawn.buffer).getBigUint64(0);
}

/** Times: whole microseconds since the Unix epoch, below 2^52. */
import { DAY } from '../schema/limits.js';

export { DAY };

/** The first time that does not fit the cipher's 52 bits (the year 2112). */
export const LIMIT = 2 ** 52;

/** The last multiple of a tick at or before a time. */
export function floor(t: number, tick: number): number {
  return t - (t % tick);
}

/** The first multiple of a tick at or after a time. */
export function ceiling(t: number, tick: number): number {
  return floor(t + tick - 1, tick);
}

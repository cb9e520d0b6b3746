/** Requests that a producer refuses. No error holds a value of an event. */
import { AlpheusError, fill } from '../errors.js';
import { DAY } from './time.js';

const WORDS = {
  NotATick: '{0} µs is not a multiple of the tick of {1} µs',
  BeyondLimit: '{0} µs leaves no room below 2^52; check the clock and its unit',
  NotTheFirst: 'only a stream that never had a session may be back-dated; open at the next tick of the clock',
  BackDated: '{0} µs is before the next tick of the clock, {1} µs; open there or later',
  NotAscending:
    '{0} µs is not after the last event or border, {1} µs; give events of one microsecond the next one, and after a clock that stepped back open a new session',
  OnATick: '{0} µs is a tick, which only a border may have; use the next microsecond',
  TickOver: '{0} µs is after the end of the open tick, {1} µs; call `advance` first',
  JumpedAhead:
    '{0} ticks passed at once, over the limit of {1}: the clock jumped, or the device slept for very long; open a new session, or call `advance` in parts if the stream was silent',
  Words: 'an event of {0} words cannot be encrypted; it must have 1 to 8192',
  Tick: `a tick of {0} µs is not allowed; it must be 2 µs to one day, ${DAY} µs`,
  CheckWord: 'the encoding writes to the check word; it was made for another schema',
  Ended: 'this session has ended, or its producer is online; open another',
  Frames: 'the schema has `frames: {0}`; this producer sends the other kind',
} as const;

/** Why a producer refuses. */
export class ProducerError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

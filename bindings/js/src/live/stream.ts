/** A live stream: it follows the clock, adds events to ticks, and delivers frames. */
import { crypto } from '#platform';
import { type Bytes, toHex } from '../bytes.js';
import { Encoder } from '../encode/encoder.js';
import { checkRow, type Input, rowOf, type Value } from '../encode/row.js';
import type { Device } from '../identity/device.js';
import type { Schema } from '../schema/model.js';
import { StreamError } from './errors.js';
import { type Held, take } from './lock.js';
import { Outbox } from './outbox.js';
import { type AnySession, type Opener, openerOf } from './sessions.js';
import type { Transport } from './transport.js';
import { heals, type RefusedFrame } from './wire.js';

/** The clocks that a stream reads. */
export interface Clock {
  /** Wall clock in microseconds since 1970. */
  now(): number;
  /** A clock that nobody sets, in microseconds. */
  steady(): number;
}

/** The platform's clocks. */
export const SYSTEM_CLOCK: Clock = {
  now: () => Math.floor(Date.now() * 1000),
  steady: () => Math.floor(performance.now() * 1000),
};

/** What a stream is opened with. */
export interface StreamOptions {
  readonly schema: Schema;
  readonly device: Device;
  readonly transport: Transport;
  /** Whether to wait until another tab has closed the stream, instead of refusing. Where there are no Web Locks, as in Node, nobody waits. */
  readonly wait?: boolean;
  /** Called whenever {@link Stream.status} has changed. What it throws is reported, and changes nothing. */
  readonly onStatus?: (status: StreamStatus) => void;
  /**
   * Called when something on the way to the service refuses, with its HTTP status: 401 or 403 of a relay whose login
   * has expired, for example. Frames wait, and are sent again: log in again meanwhile.
   */
  readonly onRefused?: (status: number) => void;
  /** Takes the place of the platform's clocks. */
  readonly clock?: Clock;
}

/** How a stream is. It holds no values. */
export interface StreamStatus {
  /** `opening`: waits for a tick at which a session can open. `failed`: nothing is sent any more. */
  readonly state: 'opening' | 'open' | 'closed' | 'failed';
  /** Whether the service was reached last. */
  readonly reached: boolean;
  /** The running session's number in hexadecimal digits. Public. */
  readonly session: string | undefined;
  /** Events that were added. */
  readonly events: number;
  /** Events that are in no window: their session ended before their tick was delivered, or the service refused its frame. */
  readonly lost: number;
  /** Frames that wait for the service. */
  readonly waiting: number;
  /** Sessions that were opened. */
  readonly sessions: number;
  /** Why frames counted for nothing: the service's reasons, the latest last. */
  readonly refusals: readonly string[];
}

/** Whole ticks that passed unseen: then the device slept. */
const ASLEEP = 2;
/** A clock that goes back further, in microseconds, was set. */
const STEPPED_BACK = 1_000_000;
/** A device that slept longer opens a new session. */
const LONG_SLEEP = 86_400_000_000;
/** The same in ticks, where each has a border. */
const MANY_BORDERS = 10_000;
/** Longest wait of a timer, in milliseconds: clocks may be set meanwhile. */
const LOOK = 1_000;
const KEPT_REFUSALS = 8;
/** Longest pause before a session takes the place of a refused one, in milliseconds. */
const REOPENING = 2_000;
/** Events that wait for a session to open. */
const MAX_PENDING = 10_000;

/** An event that waits for a session. */
interface Pending {
  readonly row: readonly Value[];
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * A stream that sends. Its events get the time at which they are added. There is one at a time in an origin
 * (Web Locks), and its session is never stored or resumed: every `open` draws a new one.
 */
export class Stream {
  private readonly encoder: Encoder;
  private readonly outbox: Outbox;
  private readonly clock: Clock;
  private state: StreamStatus['state'] = 'opening';
  private reached = true;
  private counts = { events: 0, lost: 0, sessions: 0 };
  private refusals: string[] = [];
  private pending: Pending[] = [];
  private ready: (() => void)[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When a session opens, while it is opening. */
  private opensAt = 0;
  private opening = false;
  private seen: { now: number; steady: number };
  /** Events of the open tick, and of ticks whose frames are on their way. */
  private counted = { open: 0, sent: 0 };
  /** Resolves once the fate of all borders so far is known. */
  private arrivals: Promise<void> = Promise.resolve();
  /** Resolves once the sessions before the running one have made their last frames. */
  private retired: Promise<void> = Promise.resolve();
  /** Frames of sessions that the service refused. */
  private readonly refused = new WeakMap<AnySession, number>();
  /** How many lost events were reported to callers. */
  private reported = 0;
  private over = false;
  private failure: StreamError | undefined;
  #session: AnySession | undefined;

  private constructor(
    private readonly options: StreamOptions,
    private readonly opener: Opener,
    private readonly lock: Held,
  ) {
    const { device, transport } = options;
    this.clock = options.clock ?? SYSTEM_CLOCK;
    this.seen = { now: this.clock.now(), steady: this.clock.steady() };
    this.encoder = new Encoder(options.schema);
    this.outbox = new Outbox({
      stream: device.stream,
      transport,
      random: (out) => crypto.getRandomValues(out),
      certificate: device.certificate,
      events: {
        refused: (frames) => this.onRefused(frames),
        reached: (yes) => this.onReached(yes),
        denied: (status) => report(() => options.onRefused?.(status)),
        failed: (reason) => this.fail(reason),
      },
    });
    void lock.stolen.then(() => this.abandonAll());
  }

  /**
   * Opens a stream. It resolves once a session is open, which is at the next tick.
   *
   * @throws StreamError `InUse` if it is open in another tab or part of this program
   */
  static async open(options: StreamOptions): Promise<Stream> {
    const lock = await take(`alpheus/stream/${toHex(options.device.stream)}`, options.wait === true);
    if (lock === undefined) throw new StreamError('InUse');
    let stream: Stream;
    try {
      stream = new Stream(options, await openerOf(options.schema, options.device), lock);
    } catch (refused) {
      lock.release();
      throw refused;
    }
    stream.plan(stream.clock.now());
    await new Promise<void>((resolve) => stream.ready.push(resolve));
    if (stream.state !== 'open') throw stream.failure ?? new StreamError('Closed');
    return stream;
  }

  /** The stream's id in hexadecimal digits. Public. */
  get id(): string {
    return toHex(this.options.device.stream);
  }

  /** How it is. */
  get status(): StreamStatus {
    const { state, reached, counts, refusals } = this;
    const session = this.#session?.number.toString(16).padStart(16, '0');
    return { state, reached, session, waiting: this.outbox.length, ...counts, refusals: [...refusals] };
  }

  /**
   * Adds an event to the open tick. While a session is opening, it waits, and gets the time of that tick. The event is
   * read and checked at once: it may be changed afterwards.
   *
   * @param event values by the names of attributes
   * @throws EncodeError if the event is not as the schema declares; it then leaves no trace
   */
  async add(event: Readonly<Record<string, Input>>): Promise<void> {
    if (this.state === 'closed' || this.state === 'failed') throw this.failure ?? new StreamError('Closed');
    const row = rowOf(this.options.schema, event);
    this.look();
    if (this.#session !== undefined && this.state === 'open') {
      this.encode(this.#session, row);
      return;
    }
    checkRow(this.options.schema.attributes, row);
    if (this.pending.length >= MAX_PENDING) throw new StreamError('Full');
    await new Promise<void>((resolve, reject) => this.pending.push({ row, resolve, reject }));
  }

  private encode(session: AnySession, row: readonly Value[]): void {
    const { tick } = this.options.schema;
    const at = after(this.clock.now(), session.last, tick);
    if (at >= session.nextBorder) this.follow(session, session.advance(at));
    const random = (out: Bytes): void => void crypto.getRandomValues(out);
    const made = session.event(at, (vector) => this.encoder.encode(row, random, vector));
    this.counts.events++;
    this.counted.open++;
    made?.catch(() => this.replace(session));
  }

  /**
   * Resolves once the events that were added are durable at the service and count there, after the end of their tick.
   * With a frame for each event the service tells of a frame that it refuses only with the next upload.
   *
   * @throws StreamError `Lost` if events that were added since the last such error are in no window
   */
  async flush(): Promise<void> {
    while (this.state === 'opening') await this.sleep(this.opensAt);
    const session = this.#session;
    if (session === undefined) throw this.failure ?? new StreamError('Closed');
    const border = session.nextBorder;
    while (this.#session === session && session.nextBorder <= border) await this.sleep(border);
    await this.arrivals;
    this.tellLost();
  }

  private tellLost(): void {
    if (this.failure !== undefined) throw this.failure;
    const { lost } = this.counts;
    const more = lost > this.reported;
    this.reported = lost;
    if (more) throw new StreamError('Lost');
  }

  /**
   * Ends the session properly at the end of its tick, waits until everything is delivered, and gives the stream free.
   * Events that wait for a session to open are refused with `Closed`.
   *
   * @param patience milliseconds after the end of the tick; then what waits is lost
   * @throws StreamError `Lost` if events are in no window and no `flush` said so, or if frames were left
   */
  async close(patience = 30_000): Promise<void> {
    if (this.state === 'closed' || this.state === 'failed') return;
    const session = this.state === 'open' ? this.#session : undefined;
    this.move('closed');
    clearTimeout(this.timer);
    for (const { reject } of this.pending.splice(0)) reject(new StreamError('Closed'));
    let left = 0;
    try {
      if (session !== undefined) await this.finish(session);
      await this.drain(patience);
      left = this.outbox.length;
    } finally {
      this.abandonAll();
    }
    this.tellLost();
    if (left > 0) throw new StreamError('Lost');
  }

  private async finish(session: AnySession): Promise<void> {
    const border = session.nextBorder;
    // A clock that is set back meanwhile does not hold it up.
    const most = this.clock.steady() + Math.max(border - this.clock.now(), 0);
    while (!this.over && this.clock.now() < border && this.clock.steady() < most) await this.sleep(border);
    if (!this.over) this.follow(session, session.close(border));
  }

  /** Waits until the fate of all that was sent is known, and no longer than this. */
  private async drain(patience: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, patience)));
    try {
      await Promise.race([Promise.all([this.retired, this.arrivals]), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends at once. Events of the open tick, and frames that wait, are lost. */
  abandon(): void {
    this.abandonAll();
  }

  private abandonAll(): void {
    clearTimeout(this.timer);
    this.#session?.abandon();
    this.#session = undefined;
    // Whatever arrives from here on, nobody learns of it.
    if (!this.over) this.counts.lost += this.counted.open + this.counted.sent;
    this.over = true;
    if (this.state !== 'failed') this.move('closed');
    for (const { reject } of this.pending.splice(0)) reject(new StreamError('Closed'));
    this.outbox.close();
    this.lock.release();
    for (const resolve of this.ready.splice(0)) resolve();
  }

  private fail(reason: StreamError): void {
    this.failure = reason;
    this.move('failed');
    this.abandonAll();
  }

  private move(state: StreamStatus['state']): void {
    this.state = state;
    this.tell();
  }

  private tell(): void {
    report(() => this.options.onStatus?.(this.status));
  }

  /** Ends the session. Its open tick is lost. The frames of its complete ticks are made, and sent. */
  private drop(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    this.counts.lost += this.counted.open;
    this.counted.open = 0;
    this.retired = Promise.all([this.retired, session.made()]).then(() => session.abandon());
  }

  /** Opens a session at the next tick. */
  private plan(earliest: number): void {
    this.drop();
    const { tick } = this.options.schema;
    this.opensAt = Math.ceil(Math.max(earliest, this.clock.now()) / tick) * tick;
    if (this.state !== 'opening') this.move('opening');
    this.arm();
  }

  private arm(): void {
    clearTimeout(this.timer);
    const until = this.state === 'opening' ? this.opensAt : (this.#session?.nextBorder ?? 0);
    const left = Math.ceil((until - this.clock.now()) / 1000);
    this.timer = setTimeout(() => {
      this.look();
      if (this.state === 'opening' || this.state === 'open') this.arm();
    }, Math.min(Math.max(left, 0), LOOK));
  }

  /** What has happened to the clock: borders that are due, a sleep, a step back. */
  private look(): void {
    const [now, steady] = [this.clock.now(), this.clock.steady()];
    const back = this.seen.now - now;
    const forward = now - this.seen.now - (steady - this.seen.steady);
    this.seen = { now, steady };
    const session = this.#session;
    if (this.state === 'opening') {
      // Set back, the clock would reach that tick only later.
      if (back > STEPPED_BACK) this.plan(now);
      // A session is not opened in the past, if the timer was that late.
      else if (now - this.opensAt >= this.options.schema.tick && !this.opening) this.plan(now);
      else if (now >= this.opensAt && !this.opening) void this.begin();
      return;
    }
    if (this.state !== 'open' || session === undefined) return;
    const { frames, tick } = this.options.schema;
    const borders = frames.kind === 'events' ? (now - session.nextBorder) / tick : 0;
    const isLong = now - session.nextBorder > LONG_SLEEP || borders > MANY_BORDERS;
    if (back > STEPPED_BACK || forward > LONG_SLEEP || isLong) {
      // What is complete is sent; no time is ever used again.
      if (back <= STEPPED_BACK) this.follow(session, session.advance(session.nextBorder));
      this.plan(now);
      return;
    }
    const passed = Math.floor((now - session.nextBorder) / tick);
    if (passed >= ASLEEP) this.follow(session, session.sleepUntil(now));
    else if (passed >= 0) this.follow(session, session.advance(now));
  }

  private async begin(): Promise<void> {
    this.opening = true;
    try {
      await this.retired;
      if (this.state !== 'opening') return;
      const at = this.opensAt;
      // The tick may lie before now by what a timer was late.
      const session = await this.opener.open(at, (frame) => this.outbox.put(frame));
      if (this.state !== 'opening') {
        session.abandon();
        return;
      }
      this.#session = session;
      this.counts.sessions++;
      this.move('open');
      for (const resolve of this.ready.splice(0)) resolve();
      for (const { row, resolve, reject } of this.pending.splice(0)) {
        try {
          this.encode(session, row);
          resolve();
        } catch (refused) {
          reject(refused);
        }
      }
    } catch {
      // The platform's cryptography failed, or the outbox is full: again, at another tick.
      if (this.state === 'opening') this.plan(this.clock.now() + 1);
    } finally {
      this.opening = false;
      if (this.state === 'opening' || this.state === 'open') this.arm();
    }
  }

  /**
   * Follows the borders that a session has reached, until it is known whether the events before them count. If another
   * frame that was on its way at the same time was refused, they count as lost too.
   */
  private follow(session: AnySession, made: Promise<void>): void {
    const events = this.counted.open;
    this.counted.open = 0;
    this.counted.sent += events;
    const known = (counts: boolean): void => {
      if (this.over) return;
      this.counted.sent -= events;
      if (!counts) this.counts.lost += events;
      this.tell();
    };
    const before = this.refused.get(session) ?? 0;
    const delivered = made.then(() => session.delivered());
    const arrived = delivered.then(
      (refused) => {
        this.refused.set(session, Math.max(this.refused.get(session) ?? 0, refused));
        known(refused <= before);
      },
      () => {
        known(false);
        this.replace(session);
      },
    );
    this.arrivals = Promise.all([this.arrivals, arrived]).then(() => undefined);
  }

  /** A frame of the session cannot be made or delivered: another session opens. */
  private replace(session: AnySession): void {
    if (this.#session === session && this.state === 'open') this.plan(this.clock.now());
  }

  private onReached(yes: boolean): void {
    if (this.reached === yes) return;
    this.reached = yes;
    this.tell();
  }

  private onRefused(frames: readonly RefusedFrame[]): void {
    this.refusals = [...this.refusals, ...frames.map(({ reason }) => reason)].slice(-KEPT_REFUSALS);
    const own = frames.some((frame) => heals(frame) && frame.session === this.#session?.number);
    this.tell();
    if (!own || this.state !== 'open') return;
    // Many devices may be in this at once.
    const [part = 0] = crypto.getRandomValues(new Uint8Array(1));
    this.plan(this.clock.now() + (1000 * REOPENING * part) / 256);
  }

  private sleep(until: number): Promise<void> {
    const left = Math.ceil((until - this.clock.now()) / 1000);
    return new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(left, 1), 50)));
  }
}

/** The first time from `wanted` on that is after `last` and not on a tick. */
function after(wanted: number, last: number, tick: number): number {
  const at = Math.max(wanted, last + 1);
  return at % tick === 0 ? at + 1 : at;
}

/** Calls what an application gave. Its errors are reported as those of other handlers are, and change nothing here. */
function report(call: () => void): void {
  try {
    call();
  } catch (failed) {
    if (typeof reportError === 'function') reportError(failed);
    else console.error(failed);
  }
}

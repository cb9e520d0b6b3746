/** A live stream: it follows the clock, adds events to ticks, and delivers frames. */
import { crypto } from '#platform';
import { type Bytes, toHex } from '../bytes.js';
import { Encoder } from '../encode/encoder.js';
import { type Input, rowOf } from '../encode/row.js';
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
  /** Whether to wait until another tab has closed the stream, instead of refusing. */
  readonly wait?: boolean;
  /** Called whenever {@link Stream.status} has changed. */
  readonly onStatus?: (status: StreamStatus) => void;
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
  /** Events that are in no window, because their session ended before their tick was delivered. */
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
/** Longest wait of a timer, in milliseconds: clocks may be set meanwhile. */
const LOOK = 1_000;
const KEPT_REFUSALS = 8;
/** Longest pause before a session takes the place of a refused one, in milliseconds. */
const REOPENING = 2_000;
/** Events that wait for a session to open. */
const MAX_PENDING = 10_000;

/** An event that waits for a session. */
interface Pending {
  readonly event: Readonly<Record<string, Input>>;
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
  /** How many of the events that were added are known to be delivered, or lost. */
  private settled = 0;
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
   * Adds an event to the open tick. While a session is opening, it waits, and gets the time of that tick.
   *
   * @param event values by the names of attributes
   * @throws EncodeError if the event is not as the schema declares; it then leaves no trace
   */
  async add(event: Readonly<Record<string, Input>>): Promise<void> {
    if (this.state === 'closed' || this.state === 'failed') throw this.failure ?? new StreamError('Closed');
    this.look();
    if (this.#session !== undefined && this.state === 'open') {
      this.encode(this.#session, event);
      return;
    }
    if (this.pending.length >= MAX_PENDING) throw new StreamError('Full');
    await new Promise<void>((resolve, reject) => this.pending.push({ event, resolve, reject }));
  }

  private encode(session: AnySession, event: Readonly<Record<string, Input>>): void {
    const row = rowOf(this.options.schema, event);
    const { tick } = this.options.schema;
    const at = after(this.clock.now(), session.last, tick);
    if (at >= session.nextBorder) this.followBorders(session, session.advance(at));
    const random = (out: Bytes): void => void crypto.getRandomValues(out);
    const made = session.event(at, (vector) => this.encoder.encode(row, random, vector));
    this.counts.events++;
    if (made !== undefined) this.follow(session, made, () => undefined);
  }

  /** Resolves once the events that were added are durable at the service, after the end of their tick. */
  async flush(): Promise<void> {
    const session = this.#session;
    if (session === undefined) throw new StreamError(this.state === 'closed' ? 'Closed' : 'Lost');
    const border = session.nextBorder;
    const { events } = this.counts;
    while (this.#session === session && session.nextBorder <= border) await this.sleep(border);
    try {
      await session.delivered();
    } catch (refused) {
      throw this.failure ?? (refused instanceof StreamError ? refused : new StreamError('Lost'));
    }
    if (this.#session !== session && this.state !== 'closed') throw new StreamError('Lost');
    this.settled = Math.max(this.settled, events);
  }

  /**
   * Ends the session properly at the end of its tick, waits until everything is delivered, and gives the stream free.
   *
   * @param patience milliseconds after the end of the tick; then what waits is lost
   * @throws StreamError `Lost` if something was
   */
  async close(patience = 30_000): Promise<void> {
    if (this.state === 'closed' || this.state === 'failed') return;
    const session = this.#session;
    const isOpen = session !== undefined && this.state === 'open';
    this.move('closed');
    clearTimeout(this.timer);
    for (const { reject } of this.pending.splice(0)) reject(new StreamError('Closed'));
    try {
      if (isOpen) await this.finish(session, patience);
    } finally {
      this.abandonAll();
    }
  }

  private async finish(session: AnySession, patience: number): Promise<void> {
    const border = session.nextBorder;
    // A clock that is set back meanwhile does not hold it up.
    const most = this.clock.steady() + Math.max(border - this.clock.now(), 0);
    while (this.clock.now() < border && this.clock.steady() < most) await this.sleep(border);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new StreamError('Lost')), patience);
    });
    try {
      const delivered = session.close(border).then(() => session.delivered());
      await Promise.race([delivered, late]);
      this.settled = this.counts.events;
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
    if (this.state !== 'failed') this.move('closed');
    this.drop();
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
    this.options.onStatus?.(this.status);
  }

  /** Drops the session as it is. */
  private drop(): void {
    this.counts.lost += this.counts.events - this.settled;
    this.settled = this.counts.events;
    this.#session?.abandon();
    this.#session = undefined;
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
    if (back > STEPPED_BACK || forward > LONG_SLEEP || now - session.nextBorder > LONG_SLEEP) {
      // What is complete is sent; no time is ever used again.
      if (back <= STEPPED_BACK) this.followBorders(session, session.advance(session.nextBorder));
      this.plan(now);
      return;
    }
    const { tick } = this.options.schema;
    const passed = Math.floor((now - session.nextBorder) / tick);
    if (passed >= ASLEEP) this.followBorders(session, session.sleepUntil(now));
    else if (passed >= 0) this.followBorders(session, session.advance(now));
  }

  private async begin(): Promise<void> {
    this.opening = true;
    try {
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
      for (const { event, resolve, reject } of this.pending.splice(0)) {
        try {
          this.encode(session, event);
          resolve();
        } catch (refused) {
          reject(refused);
        }
      }
    } catch {
      // The platform's cryptography failed, or the outbox is full: once more, at another tick.
      if (this.state === 'opening') this.plan(this.clock.now() + 1);
    } finally {
      this.opening = false;
      if (this.state === 'opening' || this.state === 'open') this.arm();
    }
  }

  /** Follows borders: once they are delivered, so are all events that were added before. */
  private followBorders(session: AnySession, made: Promise<void>): void {
    const events = this.counts.events;
    this.follow(session, made, () => {
      this.settled = Math.max(this.settled, events);
      this.tell();
    });
  }

  /** Follows what a session makes: if a frame cannot be made or delivered, another session opens. */
  private follow(session: AnySession, made: Promise<void>, delivered: () => void): void {
    const isCurrent = (): boolean => this.#session === session;
    const lost = (): void => {
      if (isCurrent() && this.state === 'open') this.plan(this.clock.now());
    };
    made.then(() => session.delivered()).then(() => isCurrent() && delivered(), lost);
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

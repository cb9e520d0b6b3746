/** The producer of schemas with a frame for each event, and its sessions. */
import type { Bytes } from '../bytes.js';
import type { Random } from '../encode/encoder.js';
import { bytesOf, encipher, type Words, zeros } from '../encode/words.js';
import { ProducerError } from './error.js';
import { Kind, makeFrame } from './frame.js';
import { type MasterSecret, StreamKeys } from './keys.js';
import { admit, checkShape, numberOf, roomAfter, type Start } from './start.js';
import { DAY, LIMIT } from './time.js';
import { WorkQueue } from './work.js';

/** After this many ticks without an event, a later event looks like a clock jump. */
export const LONGEST_SILENCE = 100_000;

/** Takes the frames of a session, in order. */
export type Sink = (frame: Bytes) => void;

/** Adds the words of one event to zeros. The last word, the check word, stays zero. */
export type Encoding = (vector: Words) => void;

/** What a producer of events needs. */
export interface ProducerSetup {
  readonly master: MasterSecret;
  readonly stream: Bytes;
  readonly schema: Bytes;
  readonly tick: number;
  readonly words: number;
  readonly random: Random;
}

/** One stream's producer, offline. While a session runs it opens no other. */
export class Producer {
  private readonly state = { opened: false, online: false };

  private constructor(
    private readonly keys: StreamKeys,
    private readonly setup: ProducerSetup,
  ) {}

  /** A producer of events of so many words, with borders on every multiple of the tick. */
  static async of(setup: ProducerSetup): Promise<Producer> {
    checkShape(setup.tick, setup.words);
    return new Producer(await StreamKeys.of(setup.master, setup.stream, setup.schema), setup);
  }

  /** Opens a session at a tick. Its number is 64 random bits, so no pad of another session repeats. */
  async open(start: Start, at: number, sink: Sink): Promise<Session> {
    const { tick, words, random } = this.setup;
    admit(start, at, tick, this.state);
    Object.assign(this.state, { opened: true, online: true });
    const session = new Session(this.keys, { tick, words }, sink, () => (this.state.online = false));
    try {
      await session.begin(numberOf(random), at);
    } catch (failed) {
      // The platform's cryptography failed: another session may open.
      session.abandon();
      throw failed;
    }
    return session;
  }
}

/** An online producer. It is never stored or resumed. */
export class Session {
  private readonly work = new WorkQueue();
  private session = 0n;
  private opened = 0;
  private border = 0;
  private count = 0;
  private ended = false;
  /** K of the last frame that was made. */
  #current: Words | undefined;
  #last = 0;

  /** @internal */
  constructor(
    private readonly keys: StreamKeys,
    private readonly shape: { readonly tick: number; readonly words: number },
    private readonly sink: Sink,
    private readonly onEnd: () => void,
  ) {}

  /** The session's number, until the day ends. Public. */
  get number(): bigint {
    return this.session;
  }

  /** Time of the last event or border. */
  get last(): number {
    return this.#last;
  }

  /** The time of the next border, at which a producer calls {@link advance}. */
  get nextBorder(): number {
    return this.border + this.shape.tick;
  }

  /** Events since the last border. They are lost if the session is abandoned now. */
  get unclosed(): number {
    return this.count;
  }

  /** @internal */
  begin(number: bigint, t: number): Promise<void> {
    [this.session, this.opened, this.border, this.#last, this.count] = [number, t, t, t, 0];
    return this.work.put(async () => {
      const { words } = this.shape;
      this.#current = await this.keys.keyVector(number, t, words);
      const tag = await this.keys.borderTag(0, number, t, 0);
      this.sink(makeFrame(Kind.opening, number, t, { tag }, 0).frame);
    });
  }

  /**
   * Encrypts one event, after the borders of all ticks up to it. The promise is of its frame. A refused event changes
   * nothing.
   *
   * @param t its time, after {@link last} and not on a tick
   */
  event(t: number, encode: Encoding): Promise<void> {
    this.admit(t);
    const plain = zeros(this.shape.words);
    try {
      encode(plain);
      checkWordIsZero(plain);
    } catch (refused) {
      plain.fill(0);
      throw refused;
    }
    const borders = this.bordersUntil(t);
    const previous = this.#last;
    this.#last = t;
    this.count++;
    const { session } = this;
    return joined([...borders, this.work.put(() => this.send(Kind.data, session, [previous, t], plain))]);
  }

  /** Makes the borders of all ticks up to and including a time. */
  advance(now: number): Promise<void> {
    this.needsRunning();
    roomAfter(now, this.shape.tick);
    this.silenceUntil(now);
    return joined(this.bordersUntil(now));
  }

  /** Ends the session in order at a tick: the last of its borders is a closing one. */
  close(at: number): Promise<void> {
    const { tick } = this.shape;
    this.needsRunning();
    if (at % tick !== 0) throw new ProducerError('NotATick', at, tick);
    if (at < this.nextBorder) throw new ProducerError('NotAscending', at, Math.max(this.#last, this.border));
    if (at >= LIMIT) throw new ProducerError('BeyondLimit', at);
    this.silenceUntil(at);
    const done = [...this.bordersUntil(at - tick), this.makeBorder(Kind.closing)];
    this.ended = true;
    return joined(done).finally(() => this.end());
  }

  /** Drops the session. Its {@link unclosed} events are lost: no window will include them. */
  abandon(): void {
    if (this.ended) return;
    this.work.stop();
    this.end();
  }

  private end(): void {
    this.ended = true;
    this.#current?.fill(0);
    this.#current = undefined;
    this.onEnd();
  }

  private needsRunning(): void {
    if (this.ended) throw new ProducerError('Ended');
  }

  private admit(t: number): void {
    this.needsRunning();
    if (!(t > this.#last)) throw new ProducerError('NotAscending', t, this.#last);
    if (t < this.nextBorder) return;
    if (t % this.shape.tick === 0) throw new ProducerError('OnATick', t);
    roomAfter(t, this.shape.tick);
    this.silenceUntil(t);
  }

  /** Checks that the clock has not jumped ahead. */
  private silenceUntil(t: number): void {
    const ticks = Math.floor((t - this.border) / this.shape.tick);
    if (ticks > LONGEST_SILENCE) throw new ProducerError('JumpedAhead', ticks, LONGEST_SILENCE);
  }

  private bordersUntil(t: number): Promise<void>[] {
    const done: Promise<void>[] = [];
    while (this.nextBorder <= t) {
      const isNextDay = Math.floor(this.nextBorder / DAY) !== Math.floor(this.opened / DAY);
      done.push(isNextDay ? this.beginDay() : this.makeBorder(Kind.border));
    }
    return done;
  }

  private makeBorder(kind: number): Promise<void> {
    const [session, count, previous, t] = [this.session, this.count, this.#last, this.nextBorder];
    [this.border, this.#last, this.count] = [t, t, 0];
    return this.work.put(() => this.send(kind, session, [previous, t], zeros(this.shape.words), count));
  }

  /**
   * Closes the session on the next border and opens another there, under the next number. The opening goes first.
   * Otherwise the stream would look offline between the two.
   */
  private beginDay(): Promise<void> {
    const [session, count, previous, t] = [this.session, this.count, this.#last, this.nextBorder];
    const next = BigInt.asUintN(64, session + 1n);
    [this.session, this.opened, this.border, this.#last, this.count] = [next, t, t, t, 0];
    return this.work.put(async () => {
      const { words } = this.shape;
      const opening = await this.keys.borderTag(0, next, t, 0);
      this.sink(makeFrame(Kind.opening, next, t, { tag: opening }, 0).frame);
      await this.send(Kind.closing, session, [previous, t], zeros(words), count);
      this.#current = await this.keys.keyVector(next, t, words);
    });
  }

  /** Makes and sends the frame m + K(t) − K(previous), and wipes m. */
  private async send(
    kind: number,
    session: bigint,
    [previous, t]: readonly [number, number],
    plain: Words,
    count?: number,
  ): Promise<void> {
    const { words } = this.shape;
    const claim = kind === Kind.closing ? 2 : 1;
    const tag = count === undefined ? undefined : await this.keys.borderTag(claim, session, t, count);
    const next = await this.keys.keyVector(session, t, words);
    if (this.#current === undefined) throw new ProducerError('Ended');
    encipher(plain, plain, next, this.#current);
    this.#current.fill(0);
    this.#current = next;
    const more = count === undefined || tag === undefined ? { previous } : { previous, count, tag };
    const { frame, head } = makeFrame(kind, session, t, more, words);
    frame.set(bytesOf(plain), head);
    this.sink(frame);
  }
}

/** The check word of an encoding is zero. */
export function checkWordIsZero(vector: Words): void {
  if (vector[vector.length - 1] !== 0 || vector[vector.length - 2] !== 0) throw new ProducerError('CheckWord');
}

/** All of these; each is awaited, so that none fails unheard. */
export async function joined(all: readonly Promise<void>[]): Promise<void> {
  await Promise.all(all);
}

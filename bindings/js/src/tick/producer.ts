/** The producer of tick frames, and its sessions. A session adds up its tick, and sends one frame at its end. */
import type { Bytes } from '../bytes.js';
import type { Random } from '../encode/encoder.js';
import { add, bytesOf, encipher, type Words, zeros } from '../encode/words.js';
import { ProducerError } from '../stream/error.js';
import { type MasterSecret, StreamKeys } from '../stream/keys.js';
import { checkWordIsZero, type Encoding, joined, type Sink } from '../stream/producer.js';
import { admit, checkShape, numberOf, roomAfter, type Start } from '../stream/start.js';
import { ceiling, DAY, floor, LIMIT } from '../stream/time.js';
import { WorkQueue } from '../stream/work.js';
import { Blocks, ROOT } from './blocks.js';
import { ClaimKind, endsPeriod, isGap, makeClaim, NO_ROOT } from './claim.js';
import { makeTickFrame, type Previous, SessionKey } from './frame.js';
import { type DeviceIdentity, makeOpening, openingContext } from './opening.js';

/** What a producer of ticks needs. */
export interface TickSetup {
  readonly master: MasterSecret;
  readonly stream: Bytes;
  readonly schema: Bytes;
  readonly tick: number;
  /** Sum and number of events start again at its multiples; a multiple of the tick. */
  readonly anchor: number;
  /** Numbers of words of the blocks of an event. */
  readonly blocks: readonly number[];
  readonly device: DeviceIdentity;
  readonly random: Random;
}

/** A session of a day, before its opening is sent. */
interface Begun {
  readonly number: bigint;
  readonly at: number;
  readonly key: SessionKey;
  readonly opening: Bytes;
}

/** One stream's producer, offline. While a session runs it opens no other. */
export class TickProducer {
  private readonly state = { opened: false, online: false };
  private readonly context: Bytes;

  private constructor(
    /** @internal */
    readonly keys: StreamKeys,
    /** @internal */
    readonly setup: TickSetup,
  ) {
    this.context = openingContext(setup.device.authority, setup.stream, setup.schema);
  }

  /** A producer. */
  static async of(setup: TickSetup): Promise<TickProducer> {
    checkShape(setup.tick, setup.blocks.reduce((sum, length) => sum + length, 0));
    if (setup.anchor < setup.tick || setup.anchor % setup.tick !== 0) throw new ProducerError('Tick', setup.anchor);
    return new TickProducer(await StreamKeys.of(setup.master, setup.stream, setup.schema), setup);
  }

  /**
   * Opens a session at a tick and passes its opening to a sink. The session's number is 64 random bits, here and at
   * each midnight, so no pad of another session repeats.
   */
  async open(start: Start, at: number, previous: Previous | undefined, sink: Sink): Promise<TickSession> {
    admit(start, at, this.setup.tick, this.state);
    Object.assign(this.state, { opened: true, online: true });
    const session = new TickSession(this, sink, () => (this.state.online = false));
    try {
      await session.open(numberOf(this.setup.random), at, previous);
    } catch (failed) {
      // The platform's cryptography failed: another session may open.
      session.abandon();
      throw failed;
    }
    return session;
  }

  /** @internal */
  async begin(number: bigint, at: number, previous: Previous | undefined): Promise<Begun> {
    const { random, device, stream } = this.setup;
    const drawn = new Uint8Array(32);
    random(drawn);
    try {
      const key = await SessionKey.of(drawn, stream);
      const statement = { kind: ClaimKind.opening, session: number, from: at, to: at, count: 0n, root: NO_ROOT };
      const claim = await makeClaim(this.keys, statement);
      const opening = await makeOpening(claim, previous, drawn, device, this.context, random);
      return { number, at, key, opening: await key.finish(opening) };
    } finally {
      drawn.fill(0);
    }
  }
}

/** What is sent for a border that the session has reached. */
interface Due {
  readonly kind: number;
  readonly session: bigint;
  readonly from: number;
  readonly to: number;
  /** The sum of the tick's events; undefined for gaps. */
  readonly plain: Words | undefined;
  readonly count: number;
}

/**
 * An online producer of tick frames. It holds the sum of the open tick in the clear: a crash loses that tick. It is
 * never stored or resumed; what a device may store is {@link reached}.
 */
export class TickSession {
  private readonly work = new WorkQueue();
  private readonly tick: number;
  private readonly words: number;
  private readonly blocks: Blocks;
  private session = 0n;
  private opened = 0;
  private border = 0;
  private count = 0;
  private ended = false;
  #last = 0;
  /** The sum of the open tick's events, and the event that is being encoded. */
  #plain: Words;
  readonly #event: Words;
  /** K of the last frame that was made, the key of its session, and sum and number since the last anchor. */
  #current: Words | undefined;
  #key: SessionKey | undefined;
  readonly #sum: Words;
  #events = 0n;

  /** @internal */
  constructor(
    private readonly producer: TickProducer,
    private readonly sink: Sink,
    private readonly onEnd: () => void,
  ) {
    this.tick = producer.setup.tick;
    this.blocks = new Blocks(producer.setup.blocks);
    this.words = this.blocks.words;
    [this.#plain, this.#event, this.#sum] = [zeros(this.words), zeros(this.words), zeros(this.words)];
  }

  /** @internal */
  open(number: bigint, at: number, previous: Previous | undefined): Promise<void> {
    this.moveTo(number, at);
    return this.work.put(async () => {
      const begun = await this.producer.begin(number, at, previous);
      this.sink(begun.opening);
      await this.run(begun);
    });
  }

  private moveTo(number: bigint, at: number): void {
    [this.session, this.opened, this.border, this.#last] = [number, at, at, at];
  }

  private async run({ number, at, key }: Begun): Promise<void> {
    this.#key = key;
    this.#current = await this.producer.keys.keyVector(number, at, this.words);
    this.#sum.fill(0);
    this.#events = 0n;
  }

  /** The session's number, until the day ends. Public. */
  get number(): bigint {
    return this.session;
  }

  /** The session and its last border: what the next session's opening names as the one before. Public. */
  get reached(): Previous {
    return { session: this.session, last: this.border };
  }

  /** Time of the last event or border. */
  get last(): number {
    return this.#last;
  }

  /** The time of the next border, at which a producer calls {@link advance}. */
  get nextBorder(): number {
    return this.border + this.tick;
  }

  /** Events of the open tick. They are lost if the session is abandoned now. */
  get unclosed(): number {
    return this.count;
  }

  /**
   * Adds one event to the open tick. Nothing is sent. A refused event leaves no trace.
   *
   * @param t its time, after {@link last} and before {@link nextBorder}
   */
  event(t: number, encode: Encoding): void {
    this.needsRunning();
    if (!(t > this.#last)) throw new ProducerError('NotAscending', t, this.#last);
    if (t % this.tick === 0) throw new ProducerError('OnATick', t);
    if (t > this.nextBorder) throw new ProducerError('TickOver', t, this.nextBorder);
    try {
      encode(this.#event);
      checkWordIsZero(this.#event);
      add(this.#plain, this.#event);
      this.#last = t;
      this.count++;
    } finally {
      this.#event.fill(0);
    }
  }

  /**
   * Makes the frames of all ticks up to and including a time, also of those without events. The session moves at once;
   * the promise is of the frames. A frame shows the session, its tick and the number of words. Everything else looks
   * random to anyone who lacks the stream's keys.
   */
  advance(now: number): Promise<void> {
    this.needsRunning();
    roomAfter(now, this.tick);
    return joined(this.ticksUntil(now));
  }

  /**
   * The device was asleep up to now: one frame for all ticks that have passed since its last event. It shows that the
   * device was asleep, and counted no event.
   */
  sleepUntil(now: number): Promise<void> {
    this.needsRunning();
    roomAfter(now, this.tick);
    const done: Promise<void>[] = [];
    if (this.count > 0 && this.nextBorder <= now) done.push(...this.ticksUntil(this.nextBorder));
    const until = floor(now, this.tick);
    while (this.border < until) {
      const midnight = this.lastBorder();
      if (until < midnight) done.push(this.send(this.due(ClaimKind.gap, until)));
      else done.push(this.beginDay(this.due(ClaimKind.closingGap, midnight)));
    }
    return joined(done);
  }

  /** Ends the session properly at a tick: the last of its frames is a closing one. */
  close(at: number): Promise<void> {
    this.needsRunning();
    if (at % this.tick !== 0) throw new ProducerError('NotATick', at, this.tick);
    if (at < this.nextBorder) throw new ProducerError('NotAscending', at, this.#last);
    if (at >= LIMIT) throw new ProducerError('BeyondLimit', at);
    const done = this.ticksUntil(at - this.tick);
    done.push(this.send(this.due(ClaimKind.closingTick, this.nextBorder)));
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
    for (const words of [this.#plain, this.#sum, this.#current]) words?.fill(0);
    this.#current = undefined;
    this.#key = undefined;
    this.onEnd();
  }

  private needsRunning(): void {
    if (this.ended) throw new ProducerError('Ended');
  }

  /** The first border of the next day, where the session ends at the latest. */
  private lastBorder(): number {
    return ceiling(floor(this.opened, DAY) + DAY, this.tick);
  }

  private ticksUntil(t: number): Promise<void>[] {
    const done: Promise<void>[] = [];
    while (this.nextBorder <= t) {
      const to = this.nextBorder;
      if (to < this.lastBorder()) done.push(this.send(this.due(ClaimKind.tick, to)));
      else done.push(this.beginDay(this.due(ClaimKind.closingTick, to)));
    }
    return done;
  }

  /** Takes the open tick out and moves the session to its border, so that no other frame is made for it. */
  private due(kind: number, to: number): Due {
    const { session, border: from, count } = this;
    const plain = isGap(kind) ? undefined : this.#plain;
    if (plain !== undefined) {
      this.#plain = zeros(this.words);
      this.count = 0;
    }
    [this.border, this.#last] = [to, to];
    return { kind, session, from, to, plain, count };
  }

  private send(due: Due): Promise<void> {
    return this.work.put(() => this.make(due));
  }

  /**
   * Closes the session on a border and opens another there. The opening goes first. Otherwise the stream would look
   * offline between the two. The number is drawn afresh, so copies of a running device part there.
   */
  private beginDay(due: Due): Promise<void> {
    const number = numberOf(this.producer.setup.random);
    this.moveTo(number, due.to);
    return this.work.put(async () => {
      const begun = await this.producer.begin(number, due.to, { session: due.session, last: due.to });
      this.sink(begun.opening);
      await this.make(due);
      await this.run(begun);
    });
  }

  /** Makes a frame: C = Σ m + K(to) − K(from), or a gap's. */
  private async make({ kind, session, from, to, plain, count }: Due): Promise<void> {
    const { keys, setup } = this.producer;
    const pad = keys.countPad(session, to);
    const [next] = await Promise.all([keys.keyVector(session, to, this.words), pad]);
    if (this.#current === undefined || this.#key === undefined) throw new ProducerError('Ended');
    if (plain !== undefined) {
      encipher(plain, plain, next, this.#current);
      add(this.#sum, plain);
      this.#events += BigInt(count);
    }
    this.#current.fill(0);
    this.#current = next;
    const root = this.blocks.root(this.#sum).slice(0, ROOT);
    const claim = await makeClaim(keys, { kind, session, from, to, count: this.#events, root }, pad);
    if (endsPeriod(from, to, setup.anchor)) {
      this.#sum.fill(0);
      this.#events = 0n;
    }
    const frame = makeTickFrame(claim, plain === undefined ? new Uint8Array(0) : bytesOf(plain));
    if (this.#key === undefined) throw new ProducerError('Ended');
    this.sink(await this.#key.finish(frame));
  }
}

/** Both kinds of sessions in one form, with the delivery of their frames. */
import { crypto } from '#platform';
import { type Bytes, isEqual } from '../bytes.js';
import type { Device } from '../identity/device.js';
import { DeviceError } from '../identity/device.js';
import { layoutOf } from '../layout/build.js';
import { schemaId } from '../schema/id.js';
import type { Schema } from '../schema/model.js';
import { type Encoding, Producer, type Session } from '../stream/producer.js';
import { blocksOf } from '../tick/blocks.js';
import type { Previous } from '../tick/frame.js';
import { TickProducer, type TickSession } from '../tick/producer.js';

/** Delivers a frame. The promise is of its being durable at the service, and gives whether it counts there. */
export type Deliver = (frame: Bytes) => Promise<boolean>;

/** An online stream. */
export interface AnySession {
  readonly number: bigint;
  readonly last: number;
  readonly nextBorder: number;
  event(t: number, encode: Encoding): Promise<void> | void;
  advance(now: number): Promise<void>;
  sleepUntil(now: number): Promise<void>;
  close(at: number): Promise<void>;
  abandon(): void;
  /** Resolves once all frames that it was asked for are made; also if one cannot be. */
  made(): Promise<void>;
  /**
   * Resolves once all frames that were made so far are durable, with how many of them the service refused; rejects if
   * one is lost.
   */
  delivered(): Promise<number>;
}

/** Opens sessions at ticks, one after the other. */
export interface Opener {
  open(at: number, deliver: Deliver): Promise<AnySession>;
}

/** What opens a device's sessions. A service that has another schema of the stream would read noise. */
export async function openerOf(schema: Schema, device: Device): Promise<Opener> {
  if (!isEqual(schemaId(schema), device.schema)) throw new DeviceError('OtherSchema');
  const random = (out: Bytes): void => void crypto.getRandomValues(out);
  const { master, stream } = device;
  const layout = layoutOf(schema);
  if (schema.frames.kind === 'events') {
    const setup = { master, stream, schema: device.schema, tick: schema.tick, words: layout.words, random };
    const producer = await Producer.of(setup);
    return { open: (at, deliver) => opened(deliver, (sink) => producer.open({ now: at }, at, sink)) };
  }
  if (device.identity === undefined) throw new DeviceError('NoIdentity');
  const { anchor } = schema.frames;
  const producer = await TickProducer.of({
    ...{ master, stream, schema: device.schema, tick: schema.tick, anchor, random },
    ...{ blocks: blocksOf(layout), device: device.identity },
  });
  // Of this program only. It is not stored: a restored profile would state what is long past.
  let previous: Previous | undefined;
  return {
    open: (at, deliver) =>
      opened(deliver, async (sink) => {
        const session = await producer.open({ now: at }, at, previous, sink);
        return new Remembering(session, (reached) => (previous = reached));
      }),
  };
}

/** A session of ticks that notes where it ended. */
class Remembering {
  constructor(
    private readonly session: TickSession,
    private readonly note: (reached: Previous) => void,
  ) {}

  get number(): bigint {
    return this.session.number;
  }

  get last(): number {
    return this.session.last;
  }

  get nextBorder(): number {
    return this.session.nextBorder;
  }

  event(t: number, encode: Encoding): void {
    this.session.event(t, encode);
  }

  advance(now: number): Promise<void> {
    return this.session.advance(now);
  }

  sleepUntil(now: number): Promise<void> {
    return this.session.sleepUntil(now);
  }

  close(at: number): Promise<void> {
    const { number } = this;
    return this.session.close(at).then(() => this.note({ session: number, last: at }));
  }

  abandon(): void {
    this.note(this.session.reached);
    this.session.abandon();
  }
}

type Plain = Omit<AnySession, 'made' | 'delivered' | 'sleepUntil'> & Partial<Pick<AnySession, 'sleepUntil'>>;

/** A session whose frames are delivered. */
async function opened(
  deliver: Deliver,
  open: (sink: (frame: Bytes) => void) => Promise<Session | Remembering>,
): Promise<AnySession> {
  let last: Promise<number> = Promise.resolve(0);
  const session: Plain = await open((frame) => {
    const arrived = deliver(frame);
    last = Promise.all([last, arrived]).then(([refused, counts]) => refused + Number(!counts));
    // Somebody may ask later.
    last.catch(() => undefined);
  });
  let made: Promise<void> = Promise.resolve();
  const noted = (work: Promise<void>): Promise<void> => {
    made = Promise.all([made, work]).then(() => undefined);
    made.catch(() => undefined);
    return work;
  };
  return {
    get number() {
      return session.number;
    },
    get last() {
      return session.last;
    },
    get nextBorder() {
      return session.nextBorder;
    },
    event: (t, encode) => {
      const work = session.event(t, encode);
      return work === undefined ? undefined : noted(work);
    },
    advance: (now) => noted(session.advance(now)),
    // With a frame for each event the borders of that time are sent.
    sleepUntil: (now) => noted(session.sleepUntil?.(now) ?? session.advance(now)),
    close: (at) => noted(session.close(at)),
    abandon: () => session.abandon(),
    made: () => made.catch(() => undefined),
    // Frames are delivered only after they are made.
    delivered: () => made.then(() => last),
  };
}

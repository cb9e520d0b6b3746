/**
 * Frames that the service has not confirmed, and the loop that delivers them. In memory only: what a page that goes
 * away has not delivered is lost with its session, which is never resumed. Frames are ciphertext.
 */
import { type Bytes, readU64 } from '../bytes.js';
import type { Random } from '../encode/encoder.js';
import { PostcardError } from '../postcard.js';
import { StreamError } from './errors.js';
import type { Answer, Transport } from './transport.js';
import { decodeReceipt, encodeUploads, heals, type Receipt, type RefusedFrame, shortName, type Upload } from './wire.js';

/** Most bytes of frames in an upload, unless one frame is larger, and that wait in all. */
const UPLOAD = 256 << 10;
const WAITING = 32 << 20;
/** Pauses before the service is called again, in milliseconds. Devices that were cut off do not come back together. */
const PAUSE = { least: 100, most: 10_000 };
/** How long an answer may take. */
const PATIENCE = 30_000;
/** Rules by which the service refuses a device for good. Any other refusal may be of something on the way to it. */
const FINAL = new Set(['certificate', 'revoked', 'role', 'malformed', 'introduction', 'size']);

/** A frame on its way. */
interface Waiting {
  readonly frame: Bytes;
  readonly session: bigint;
  readonly arrived: (counts: boolean) => void;
  readonly failed: (reason: unknown) => void;
}

/** An upload, and how many of the frames that wait it holds. */
type Sending = Upload & { readonly count: number };

/** What the outbox tells its stream. */
export interface OutboxEvents {
  /** Frames that were taken count for nothing. */
  refused(frames: readonly RefusedFrame[]): void;
  /** The service was reached, or was not. */
  reached(yes: boolean): void;
  /** Something between here and the service refused a request, with this HTTP status. It is asked again. */
  denied(status: number): void;
  /** Nothing is sent any more. */
  failed(reason: StreamError): void;
}

/** What an outbox needs. */
export interface OutboxSetup {
  readonly stream: Bytes;
  readonly transport: Transport;
  readonly random: Random;
  /** Introduces the device to the service, if its schema needs it. */
  readonly certificate: Bytes | undefined;
  readonly events: OutboxEvents;
}

/** Delivers the frames of one stream, in order. */
export class Outbox {
  private waiting: Waiting[] = [];
  private bytes = 0;
  private name: Bytes;
  private number = 1n;
  /** The upload on its way. A repeated upload has the same number and content. */
  private upload: Sending | undefined;
  private introduced = false;
  private running = false;
  private pause = PAUSE.least;
  private failure: StreamError | undefined;
  private readonly stop = new AbortController();

  constructor(private readonly setup: OutboxSetup) {
    this.name = this.drawn(16);
  }

  private drawn(length: number): Bytes {
    const out = new Uint8Array(length);
    this.setup.random(out);
    return out;
  }

  /** Frames that wait. */
  get length(): number {
    return this.waiting.length;
  }

  /**
   * Adds a frame. The promise is of its being durable at the service. It gives whether the frame counts there: not if
   * the service refused a frame of its session in that upload.
   */
  put(frame: Bytes): Promise<boolean> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.bytes + frame.length > WAITING) return Promise.reject(new StreamError('Full'));
    this.bytes += frame.length;
    const session = readU64(frame.subarray(1), true);
    const done = new Promise<boolean>((arrived, failed) => this.waiting.push({ frame, session, arrived, failed }));
    // Nobody may be waiting for this frame.
    done.catch(() => undefined);
    if (!this.running) void this.run();
    return done;
  }

  /** Ends for good: what waits is lost. */
  close(reason = new StreamError('Closed')): void {
    this.failure ??= reason;
    this.stop.abort();
    for (const { failed } of this.waiting.splice(0)) failed(this.failure);
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.waiting.length > 0 && this.failure === undefined) {
      try {
        await this.turn();
      } catch (refused) {
        if (this.failure !== undefined) break;
        if (refused instanceof StreamError) {
          this.setup.events.failed(refused);
          this.close(refused);
          break;
        }
        this.setup.events.reached(false);
        await this.rest();
      }
    }
    this.running = false;
  }

  private async turn(): Promise<void> {
    if (!this.introduced && this.setup.certificate !== undefined) await this.ask('/v1/device', this.setup.certificate);
    this.introduced = true;
    this.upload ??= this.next();
    const { upload } = this;
    const body = await this.ask('/v1/events', encodeUploads([upload]));
    let receipt: Receipt;
    try {
      receipt = decodeReceipt(body, this.setup.stream);
    } catch (refused) {
      throw refused instanceof PostcardError ? new StreamError('BadAnswer') : refused;
    }
    if (receipt.refused.some(heals)) this.introduced = false;
    if (receipt.refused.length > 0) this.setup.events.refused(receipt.refused);
    await this.settle(upload, receipt);
  }

  /** The oldest frames. */
  private next(): Sending {
    const frames: Bytes[] = [];
    let bytes = 0;
    for (const { frame } of this.waiting) {
      if (frames.length > 0 && bytes + frame.length > UPLOAD) break;
      frames.push(frame);
      bytes += frame.length;
    }
    return { stream: this.setup.stream, outbox: this.name, number: this.number, frames, count: frames.length };
  }

  /** Asks until `signal`; rejects if it may be asked again, with a {@link StreamError} if not. */
  private async ask(path: string, body: Bytes): Promise<Bytes> {
    const late = AbortSignal.timeout(PATIENCE);
    const signal = new AbortController();
    const abort = (): void => signal.abort();
    late.addEventListener('abort', abort);
    this.stop.signal.addEventListener('abort', abort);
    let answer: Answer;
    try {
      answer = await this.setup.transport.post(path, body, signal.signal);
    } finally {
      late.removeEventListener('abort', abort);
      this.stop.signal.removeEventListener('abort', abort);
    }
    if (answer.status === 200) return answer.body;
    const [isLate, rule] = [answer.status >= 500 || answer.status === 408 || answer.status === 429, ruleOf(answer.body)];
    if (!isLate && FINAL.has(rule)) throw new StreamError('Refused', answer.status, rule);
    // It may be a relay whose login has expired, or a proxy.
    if (!isLate) this.setup.events.denied(answer.status);
    throw new Error('again, later');
  }

  private async settle(upload: Sending, receipt: Receipt): Promise<void> {
    const [status] = receipt.uploads;
    if (status === undefined) throw new StreamError('BadAnswer');
    const forked =
      (status.kind === 'before' && status.last > upload.number) ||
      (status.kind === 'missing' && status.next !== upload.number);
    if (forked) {
      // The service's state is an older copy. What waits is sent under a new name.
      [this.name, this.number, this.upload] = [this.drawn(16), 1n, undefined];
      await this.rest();
      return;
    }
    if (status.kind === 'withdrawn') throw new StreamError('Withdrawn');
    if (status.kind === 'not-yours' || status.kind === 'missing') {
      // The service may learn of the stream later, from its controller.
      this.setup.events.reached(false);
      await this.rest();
      return;
    }
    this.pause = PAUSE.least;
    this.setup.events.reached(true);
    [this.upload, this.number] = [undefined, this.number + 1n];
    const refused = new Set(receipt.refused.map(({ session }) => session));
    for (const { frame, session, arrived } of this.waiting.splice(0, upload.count)) {
      this.bytes -= frame.length;
      // Which of a session's frames were refused is not said.
      arrived(status.kind !== 'malformed' && !refused.has(session));
    }
  }

  /** A random part of a pause that doubles. */
  private rest(): Promise<void> {
    const [part = 0] = this.drawn(1);
    const time = this.pause * (0.5 + part / 512);
    this.pause = Math.min(2 * this.pause, PAUSE.most);
    const { signal } = this.stop;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, time);
      signal.addEventListener('abort', end);
    });
  }
}

/** The rule that a refusal names; its other words stay out of the error. */
function ruleOf(body: Bytes): string {
  try {
    const { rule } = JSON.parse(new TextDecoder().decode(body)) as { rule?: unknown };
    return typeof rule === 'string' ? shortName(rule) : 'no rule';
  } catch {
    return 'no rule';
  }
}

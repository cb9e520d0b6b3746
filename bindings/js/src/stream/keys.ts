/** Keys of one stream: daily subkeys, key vectors K(t), MACs of borders and ticks (Zeph §3.3). */
import { type Bytes, readU64, u64 } from '../bytes.js';
import { deriveStreamKey, deriveTagKey, importSecret, type StreamKey, type TagKey } from '../crypto/keys.js';
import type { Words } from '../encode/words.js';
import { ProducerError } from './error.js';
import { DAY, LIMIT } from './time.js';

const DAY_LABEL = 'alpheus/stream/day/v1';
const BORDER_KEY_LABEL = 'alpheus/stream/border/v1';
const BORDER_LABEL = 'alpheus/border/v1';
const TICK_LABEL = 'alpheus/tick/v2';
const COUNT_LABEL = 'alpheus/tick/count/v2';
/** Bits that number a block within its vector. */
const BLOCK_BITS = 12;

/** A stream's secret as a handle, which opens what the stream sends. It is in no text and no JSON. A browser exports it to no script. */
export class MasterSecret {
  readonly #key: CryptoKey;

  private constructor(key: CryptoKey) {
    this.#key = key;
  }

  /** From 32 bytes, which may be wiped afterwards. */
  static async of(secret: Bytes): Promise<MasterSecret> {
    return new MasterSecret(await importSecret(secret));
  }

  /** From a handle in a database. */
  static fromHandle(handle: CryptoKey): MasterSecret {
    return new MasterSecret(handle);
  }

  /** The handle, to be kept in a database of the browser. */
  get handle(): CryptoKey {
    return this.#key;
  }
}

/** The keys of one stream under one schema. A service that redefines the schema gets noise. */
export class StreamKeys {
  /** The subkey used last, and its day. Nearly every call is for the same day. */
  #day: { day: number; key: Promise<StreamKey> } | undefined;
  readonly #master: CryptoKey;
  readonly #border: TagKey;

  private constructor(
    master: CryptoKey,
    border: TagKey,
    readonly stream: Bytes,
    readonly schema: Bytes,
  ) {
    this.#master = master;
    this.#border = border;
  }

  /** Derives the keys. */
  static async of(master: MasterSecret, stream: Bytes, schema: Bytes): Promise<StreamKeys> {
    const border = await deriveTagKey(master.handle, BORDER_KEY_LABEL, stream, schema);
    return new StreamKeys(master.handle, border, stream.slice(), schema.slice());
  }

  /**
   * K(t), the pad of a time in a session. Used for one event it hides the event from all who lack the keys. Used for
   * two, it hides neither.
   */
  async keyVector(session: bigint, t: number, words: number): Promise<Words> {
    if (!(t >= 0 && t < LIMIT)) throw new ProducerError('BeyondLimit', t);
    // session:64 ‖ t:52 ‖ 0:12, the first block of the vector.
    const counter = new Uint8Array(16);
    const view = new DataView(counter.buffer);
    view.setBigUint64(0, session);
    view.setBigUint64(8, BigInt(t) << BigInt(BLOCK_BITS));
    const key = await this.dayKey(Math.floor(t / DAY));
    return new Uint32Array(await key.fill(counter, 8 * words, BLOCK_BITS));
  }

  private dayKey(day: number): Promise<StreamKey> {
    if (this.#day?.day !== day) {
      const key = deriveStreamKey(this.#master, DAY_LABEL, this.stream, this.schema, u64(day));
      this.#day = { day, key };
      // A platform that fails once is asked again.
      key.catch(() => {
        if (this.#day?.key === key) this.#day = undefined;
      });
    }
    return this.#day.key;
  }

  /** The MAC of a border. Kinds: 0 opening, 1 interior, 2 closing. */
  async borderTag(kind: number, session: bigint, t: number, count: number): Promise<Bytes> {
    return this.#border.tag(BORDER_LABEL, u64(kind), u64(session), u64(t), u64(count));
  }

  /** The MAC of what a tick frame states. */
  async tickTag(
    kind: number,
    session: bigint,
    [from, to]: readonly [number, number],
    count: bigint,
    root: Uint8Array,
  ): Promise<Bytes> {
    return this.#border.tag(TICK_LABEL, u64(kind), u64(session), u64(from), u64(to), u64(count), root);
  }

  /** The pad over a tick frame's number of events. Each border of a session has one frame. */
  async countPad(session: bigint, to: number): Promise<bigint> {
    return readU64(await this.#border.tag(COUNT_LABEL, u64(session), u64(to)), true);
  }
}

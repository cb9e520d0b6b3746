/** Signatures over labelled digests: Ed25519, checked as strictly as in the Rust implementation. */
import { crypto } from '#platform';
import { ed25519 } from '@noble/curves/ed25519';
import { sha512 } from '@noble/hashes/sha2';
import { type Bytes, concat, fromHex, isEqual } from '../bytes.js';
import { CryptoError } from '../errors.js';
import { labelledHash } from './hash.js';

/** Bytes of a signature. */
export const SIGNATURE = 64;

const { Point } = ed25519;
const ORDER = ed25519.CURVE.n;
/** What comes before a seed in PKCS #8. */
const PKCS8 = fromHex('302e020100300506032b657004220420') as Bytes;

/** Signs as one party. The key is a handle where the platform knows Ed25519. It shows in no text and no JSON. */
export class SigningKey {
  readonly #key: CryptoKey | Bytes;

  private constructor(key: CryptoKey | Bytes) {
    this.#key = key;
  }

  /** The key that 32 bytes determine, which may be wiped afterwards. */
  static async fromSeed(seed: Bytes): Promise<SigningKey> {
    const encoded = concat(PKCS8, seed);
    try {
      return new SigningKey(await crypto.subtle.importKey('pkcs8', encoded, 'Ed25519', false, ['sign']));
    } catch (refused) {
      if ((refused as Error).name !== 'NotSupportedError') throw new CryptoError('InvalidKey', 'this is not the seed of a key');
      return new SigningKey(seed.slice());
    } finally {
      encoded.fill(0);
    }
  }

  /** A key that WebCrypto holds, from a database for instance. */
  static fromHandle(handle: CryptoKey): SigningKey {
    return new SigningKey(handle);
  }

  /** The handle, to be kept in a database of the browser; undefined where the platform lacks Ed25519. */
  get handle(): CryptoKey | undefined {
    return this.#key instanceof Uint8Array ? undefined : this.#key;
  }

  /** Signs the digest of a label and a message. */
  async sign(label: string, message: Uint8Array): Promise<Bytes> {
    const digest = labelledHash(label, message);
    if (this.#key instanceof Uint8Array) return ed25519.sign(digest, this.#key) as Bytes;
    return new Uint8Array(await crypto.subtle.sign('Ed25519', this.#key, digest));
  }
}

/** A public key of large order, in its canonical form. */
export class VerifyingKey {
  readonly #point: InstanceType<typeof Point>;

  private constructor(
    point: InstanceType<typeof Point>,
    /** Its 32 bytes. */
    readonly bytes: Bytes,
  ) {
    this.#point = point;
  }

  /** Checks that bytes are a key. */
  static of(bytes: Bytes): VerifyingKey {
    const point = decoded(bytes);
    if (point === undefined) {
      throw new CryptoError('InvalidKey', 'this is not a public key of large order in its canonical form');
    }
    return new VerifyingKey(point, bytes.slice());
  }

  /** Checks a signature: the equation without the cofactor, and no point of small order. */
  verify(label: string, message: Uint8Array, signature: Uint8Array): void {
    if (!this.holds(labelledHash(label, message), signature)) {
      throw new CryptoError('Mismatch', 'the signature is of another key, label or message');
    }
  }

  private holds(digest: Bytes, signature: Uint8Array): boolean {
    if (signature.length !== SIGNATURE) return false;
    const r = signature.slice(0, 32) as Bytes;
    const commitment = decoded(r);
    const s = littleEndian(signature.subarray(32));
    if (commitment === undefined || s >= ORDER) return false;
    const k = littleEndian(sha512(concat(r, this.bytes, digest))) % ORDER;
    const left = s === 0n ? Point.ZERO : Point.BASE.multiplyUnsafe(s);
    return left.subtract(this.#point.multiplyUnsafe(k)).equals(commitment);
  }

  /** Whether it is the same key. */
  equals(other: VerifyingKey): boolean {
    return isEqual(this.bytes, other.bytes);
  }
}

function decoded(bytes: Bytes): InstanceType<typeof Point> | undefined {
  try {
    const point = Point.fromHex(bytes, false);
    return point.isSmallOrder() ? undefined : point;
  } catch {
    return undefined;
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

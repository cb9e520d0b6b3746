/**
 * Symmetric keys as handles of WebCrypto, whose bytes are in no text, JSON or log. In a browser the handle of a secret
 * cannot be exported, but code that has it can derive from it what this package derives. In Node, code of the process
 * can also export it. Derivation, pads and MACs run in the platform.
 */
import { atOnce, crypto } from '#platform';
import type { Bytes } from '../bytes.js';
import { CryptoError } from '../errors.js';
import { delimited } from './hash.js';

const TAG = 16;
const EMPTY = new Uint8Array(0);
/** Zeros that counter mode turns into key stream. */
const ZEROS = new Uint8Array(8 * 8192);

/** A secret to derive keys from, as a handle. The bytes may be wiped afterwards. */
export async function importSecret(secret: Bytes): Promise<CryptoKey> {
  // Browsers leave it out on pages that did not come over HTTPS or from this machine.
  if ((crypto as Crypto | undefined)?.subtle === undefined) {
    throw new CryptoError('NoWebCrypto', 'this page has no WebCrypto; serve it over HTTPS');
  }
  return crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey', 'deriveBits']);
}

function hkdf(label: string, parts: readonly Uint8Array[]): HkdfParams {
  return { name: 'HKDF', hash: 'SHA-256', salt: EMPTY, info: delimited(label, ...parts) };
}

/** Bytes that are bound to a label and parts (HKDF-SHA256 without salt). */
export async function deriveBytes(
  secret: CryptoKey,
  length: number,
  label: string,
  ...parts: readonly Uint8Array[]
): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.deriveBits(hkdf(label, parts), secret, 8 * length));
}

/** A key for MACs, derived in the same way. */
export async function deriveTagKey(secret: CryptoKey, label: string, ...parts: readonly Uint8Array[]): Promise<TagKey> {
  if (atOnce !== undefined) return new TagKey(await derived(secret, 32, label, parts, atOnce.hmac));
  const shape = { name: 'HMAC', hash: 'SHA-256', length: 256 };
  return new TagKey(withHandle(await crypto.subtle.deriveKey(hkdf(label, parts), secret, shape, false, ['sign'])));
}

/** A key for key streams, derived in the same way. */
export async function deriveStreamKey(
  secret: CryptoKey,
  label: string,
  ...parts: readonly Uint8Array[]
): Promise<StreamKey> {
  if (atOnce !== undefined) return new StreamKey(await derived(secret, 16, label, parts, atOnce.counterMode));
  const shape = { name: 'AES-CTR', length: 128 };
  const handle = await crypto.subtle.deriveKey(hkdf(label, parts), secret, shape, false, ['encrypt']);
  return new StreamKey(inCounterMode(handle));
}

/** Derives the bytes of a key, and wipes them once the platform has it. */
async function derived<T>(
  secret: CryptoKey,
  length: number,
  label: string,
  parts: readonly Uint8Array[],
  of: (key: Bytes) => T,
): Promise<T> {
  const key = await deriveBytes(secret, length, label, ...parts);
  try {
    return of(key);
  } finally {
    key.fill(0);
  }
}

type Sign = (data: Bytes) => Bytes | Promise<ArrayBuffer>;
type Fill = (counter: Bytes, zeros: Bytes, bits: number) => ArrayBuffer | Promise<ArrayBuffer>;

function withHandle(key: CryptoKey): Sign {
  return (data) => crypto.subtle.sign('HMAC', key, data);
}

function inCounterMode(key: CryptoKey): Fill {
  return (counter, zeros, bits) => crypto.subtle.encrypt({ name: 'AES-CTR', counter, length: bits }, key, zeros);
}

/** HMAC-SHA256, cut to 16 bytes. */
export class TagKey {
  readonly #sign: Sign;

  /** @internal */
  constructor(sign: Sign) {
    this.#sign = sign;
  }

  /** From bytes, which may be wiped afterwards. */
  static async of(key: Bytes): Promise<TagKey> {
    if (atOnce !== undefined) return new TagKey(atOnce.hmac(key));
    const shape = { name: 'HMAC', hash: 'SHA-256' };
    return new TagKey(withHandle(await crypto.subtle.importKey('raw', key, shape, false, ['sign'])));
  }

  /** The tag of a label and parts. */
  async tag(label: string, ...parts: readonly Uint8Array[]): Promise<Bytes> {
    return new Uint8Array(await this.#sign(delimited(label, ...parts))).slice(0, TAG);
  }
}

/** AES-128 in counter mode. */
export class StreamKey {
  readonly #fill: Fill;

  /** @internal */
  constructor(fill: Fill) {
    this.#fill = fill;
  }

  /** From 16 bytes, which may be wiped afterwards. */
  static async of(key: Bytes): Promise<StreamKey> {
    if (atOnce !== undefined) return new StreamKey(atOnce.counterMode(key));
    return new StreamKey(inCounterMode(await crypto.subtle.importKey('raw', key, 'AES-CTR', false, ['encrypt'])));
  }

  /**
   * Key stream from a block on. In one call the platform counts the last `bits` bits up, which must not overflow.
   *
   * @param length bytes, at most 64 KiB
   */
  async fill(counter: Bytes, length: number, bits: number): Promise<ArrayBuffer> {
    return this.#fill(counter, ZEROS.subarray(0, length), bits);
  }
}

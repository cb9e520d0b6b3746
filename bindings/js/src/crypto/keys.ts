/**
 * Symmetric keys as handles of WebCrypto. A handle cannot be exported: neither code in the page nor a log gets at the
 * key. Derivation, pads and MACs run in the platform.
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
  const shape = { name: 'HMAC', hash: 'SHA-256', length: 256 };
  return new TagKey(await crypto.subtle.deriveKey(hkdf(label, parts), secret, shape, false, ['sign']));
}

/** A key for key streams, derived in the same way. */
export async function deriveStreamKey(
  secret: CryptoKey,
  label: string,
  ...parts: readonly Uint8Array[]
): Promise<StreamKey> {
  const shape = { name: 'AES-CTR', length: 128 };
  return new StreamKey(await crypto.subtle.deriveKey(hkdf(label, parts), secret, shape, false, ['encrypt']));
}

/** HMAC-SHA256, cut to 16 bytes. */
export class TagKey {
  readonly #key: CryptoKey;
  readonly #atOnce: ((data: Bytes) => Bytes) | undefined;

  constructor(key: CryptoKey) {
    this.#key = key;
    this.#atOnce = atOnce?.hmac(key);
  }

  /** From bytes, which may be wiped afterwards. */
  static async of(key: Bytes): Promise<TagKey> {
    const shape = { name: 'HMAC', hash: 'SHA-256' };
    return new TagKey(await crypto.subtle.importKey('raw', key, shape, false, ['sign']));
  }

  /** The tag of a label and parts. */
  async tag(label: string, ...parts: readonly Uint8Array[]): Promise<Bytes> {
    const data = delimited(label, ...parts);
    const whole = this.#atOnce?.(data) ?? new Uint8Array(await crypto.subtle.sign('HMAC', this.#key, data));
    return whole.slice(0, TAG);
  }
}

/** AES-128 in counter mode. */
export class StreamKey {
  readonly #key: CryptoKey;
  readonly #atOnce: ((counter: Bytes, zeros: Bytes) => ArrayBuffer) | undefined;

  constructor(key: CryptoKey) {
    this.#key = key;
    this.#atOnce = atOnce?.counterMode(key);
  }

  /** From 16 bytes, which may be wiped afterwards. */
  static async of(key: Bytes): Promise<StreamKey> {
    return new StreamKey(await crypto.subtle.importKey('raw', key, 'AES-CTR', false, ['encrypt']));
  }

  /**
   * Key stream from a block on. In one call the platform counts the last `bits` bits up, which must not overflow.
   *
   * @param length bytes, at most 64 KiB
   */
  async fill(counter: Bytes, length: number, bits: number): Promise<ArrayBuffer> {
    const zeros = ZEROS.subarray(0, length);
    const made = this.#atOnce?.(counter, zeros);
    return made ?? crypto.subtle.encrypt({ name: 'AES-CTR', counter, length: bits }, this.#key, zeros);
  }
}

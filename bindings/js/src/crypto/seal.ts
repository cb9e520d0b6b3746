/**
 * Secrets that only one party can open: HPKE (RFC 9180), one message in base mode: DHKEM(X25519, HKDF-SHA256),
 * HKDF-SHA256, ChaCha20-Poly1305. A sealed secret is the encapsulated key and then the ciphertext.
 */
import { chacha20poly1305 } from '@noble/ciphers/chacha';
import { expand as hkdfExpand, extract as hkdfExtract } from '@noble/hashes/hkdf';
import { sha256 } from '@noble/hashes/sha2';
import { type Bytes, concat, utf8 } from '../bytes.js';
import type { Random } from '../encode/encoder.js';
import { CryptoError } from '../errors.js';
import { labelledHash } from './hash.js';
import { agree, LENGTH, publicHalf } from './x25519.js';

/** Bytes that sealing adds. */
export const OVERHEAD = LENGTH + 16;

const NONE = new Uint8Array(0);
const KEM = concat(utf8('KEM'), Uint8Array.of(0, 0x20));
const SUITE = concat(utf8('HPKE'), Uint8Array.of(0, 0x20, 0, 1, 0, 3));
const VERSION = utf8('HPKE-v1');

function extract(suite: Bytes, salt: Uint8Array, label: string, secret: Uint8Array): Bytes {
  return hkdfExtract(sha256, concat(VERSION, suite, utf8(label), secret), salt) as Bytes;
}

function expand(suite: Bytes, key: Uint8Array, label: string, info: Uint8Array, length: number): Bytes {
  const size = Uint8Array.of(length >> 8, length & 0xff);
  return hkdfExpand(sha256, key, concat(size, VERSION, suite, utf8(label), info), length) as Bytes;
}

/** The private key that a seed determines. */
function deriveKey(seed: Uint8Array): Bytes {
  return expand(KEM, extract(KEM, NONE, 'dkp_prk', seed), 'sk', NONE, LENGTH);
}

/** ExtractAndExpand of the KEM, the key schedule, and the cipher of the first message. */
function cipher(agreed: Bytes, keys: Bytes, info: Uint8Array, data: Uint8Array): ReturnType<typeof chacha20poly1305> {
  const shared = expand(KEM, extract(KEM, NONE, 'eae_prk', agreed), 'shared_secret', keys, 32);
  const hashes = [extract(SUITE, NONE, 'psk_id_hash', NONE), extract(SUITE, NONE, 'info_hash', info)];
  const context = concat(Uint8Array.of(0), ...hashes);
  const secret = extract(SUITE, shared, 'secret', NONE);
  const key = expand(SUITE, secret, 'key', context, 32);
  return chacha20poly1305(key, expand(SUITE, secret, 'base_nonce', context, 12), data);
}

/** RFC 9180's seal, with the ephemeral key that a seed determines, which is random and used once. */
export async function hpkeSeal(
  recipient: Bytes,
  info: Uint8Array,
  data: Uint8Array,
  secret: Uint8Array,
  seed: Uint8Array,
): Promise<Bytes> {
  const ephemeral = deriveKey(seed);
  const agreed = await agree(ephemeral, recipient);
  if (agreed === undefined) throw new CryptoError('SealingKey', 'the key is of small order: anybody could open it');
  const encapsulated = await publicHalf(ephemeral);
  const sealed = cipher(agreed, concat(encapsulated, recipient), info, data).encrypt(secret);
  ephemeral.fill(0);
  agreed.fill(0);
  return concat(encapsulated, sealed);
}

/** A public key that secrets are sealed for. */
export class SealingPublic {
  private constructor(
    /** Its 32 bytes. */
    readonly bytes: Bytes,
  ) {}

  /** Checks that bytes are a key, and not of small order. */
  static async of(bytes: Bytes): Promise<SealingPublic> {
    if (bytes.length !== LENGTH || (await agree(Uint8Array.of(9, ...new Uint8Array(31)), bytes)) === undefined) {
      throw new CryptoError('SealingKey', 'this is not a key that secrets can be sealed for');
    }
    return new SealingPublic(bytes.slice());
  }

  /** Seals a secret, which opens only under the same label and context. */
  async seal(label: string, context: Uint8Array, secret: Uint8Array, random: Random): Promise<Bytes> {
    const seed = new Uint8Array(32);
    random(seed);
    try {
      return await hpkeSeal(this.bytes, labelledHash(label, context), NONE, secret, seed);
    } finally {
      seed.fill(0);
    }
  }
}

/** Opens secrets that were sealed for its public half. */
export class SealingKey {
  readonly #key: Bytes;

  private constructor(
    key: Bytes,
    /** The public half. */
    readonly own: Bytes,
  ) {
    this.#key = key;
  }

  /** The key that 32 bytes determine. */
  static async fromSeed(seed: Uint8Array): Promise<SealingKey> {
    const key = deriveKey(seed);
    return new SealingKey(key, await publicHalf(key));
  }

  /** Opens a secret. */
  async open(label: string, context: Uint8Array, sealed: Uint8Array): Promise<Bytes> {
    return this.openRaw(labelledHash(label, context), NONE, sealed);
  }

  /** RFC 9180's open. */
  async openRaw(info: Uint8Array, data: Uint8Array, sealed: Uint8Array): Promise<Bytes> {
    const refused = (): CryptoError => new CryptoError('DoesNotOpen', 'it was sealed for another key or purpose');
    if (sealed.length < OVERHEAD) throw refused();
    const encapsulated = sealed.slice(0, LENGTH) as Bytes;
    const agreed = await agree(this.#key, encapsulated);
    if (agreed === undefined) throw refused();
    try {
      return cipher(agreed, concat(encapsulated, this.own), info, data).decrypt(sealed.slice(LENGTH)) as Bytes;
    } catch {
      throw refused();
    }
  }
}

/** What platforms have in common. */
import type { Bytes } from '../bytes.js';

/** Cryptography with WebCrypto's keys that does not make its caller wait. */
export interface AtOnce {
  /** HMAC-SHA256. */
  hmac(key: CryptoKey): (data: Bytes) => Bytes;
  /** AES-128 in counter mode, over zeros. */
  counterMode(key: CryptoKey): (counter: Bytes, zeros: Bytes) => ArrayBuffer;
}

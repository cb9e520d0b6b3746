/** What platforms have in common. */
import type { Bytes } from '../bytes.js';

/** Cryptography that does not make its caller wait. Keys are copied out of JavaScript's memory; their bytes may be wiped. */
export interface AtOnce {
  /** HMAC-SHA256. */
  hmac(key: Bytes): (data: Bytes) => Bytes;
  /** AES-128 in counter mode, over zeros. */
  counterMode(key: Bytes): (counter: Bytes, zeros: Bytes) => ArrayBuffer;
}

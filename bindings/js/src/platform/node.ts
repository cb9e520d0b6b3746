/** What Node gives: WebCrypto, which is no global before Node 20, and the same at once. */
import { createCipheriv, createHmac, createSecretKey, webcrypto } from 'node:crypto';
import type { AtOnce } from './types.js';

/** The platform's WebCrypto. */
export const crypto = webcrypto as unknown as Crypto;

/** Node's WebCrypto hands each call to another thread, which costs more than the work of a tick. */
export const atOnce: AtOnce | undefined = {
  hmac(key) {
    const handle = createSecretKey(key);
    return (data) => new Uint8Array(createHmac('sha256', handle).update(data).digest());
  },
  counterMode(key) {
    const handle = createSecretKey(key);
    return (counter, zeros) => {
      const made = createCipheriv('aes-128-ctr', handle, counter).update(zeros);
      // A buffer of Node's may lie within a larger one.
      return new Uint8Array(made).buffer;
    };
  },
};

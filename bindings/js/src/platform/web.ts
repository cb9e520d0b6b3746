/** What browsers, workers and edge runtimes give. */
import type { AtOnce } from './types.js';

/** The platform's WebCrypto. It is there only on secure origins. */
export const crypto: Crypto = globalThis.crypto;

/** WebCrypto alone is asynchronous. */
export const atOnce: AtOnce | undefined = undefined;

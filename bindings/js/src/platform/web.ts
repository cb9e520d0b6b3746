/** What browsers, workers and edge runtimes give. */

/** The platform's WebCrypto. It is there only on secure origins. */
export const crypto: Crypto = globalThis.crypto;

/** What Node gives: WebCrypto, which is no global before Node 20. */
import { webcrypto } from 'node:crypto';

/** The platform's WebCrypto. */
export const crypto = webcrypto as unknown as Crypto;

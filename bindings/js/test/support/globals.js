// What is no global before Node 20.
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;

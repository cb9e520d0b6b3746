/** X25519 (RFC 7748): the platform's where it has it, else a library's. */
import { crypto } from '#platform';
import { x25519 } from '@noble/curves/ed25519';
import { type Bytes, concat, fromHex } from '../bytes.js';

/** Bytes of keys and secrets. */
export const LENGTH = 32;

const PKCS8 = fromHex('302e020100300506032b656e04220420') as Bytes;
const BASE = Uint8Array.of(9, ...new Uint8Array(LENGTH - 1));

/** The public half of a private key. */
export async function publicHalf(key: Bytes): Promise<Bytes> {
  return (await agree(key, BASE)) as Bytes;
}

/** The agreed secret; undefined if their key is of small order, for which everybody gets the same. */
export async function agree(key: Bytes, theirs: Bytes): Promise<Bytes | undefined> {
  const encoded = concat(PKCS8, key);
  try {
    const own = await crypto.subtle.importKey('pkcs8', encoded, 'X25519', false, ['deriveBits']);
    const other = await crypto.subtle.importKey('raw', theirs, 'X25519', false, []);
    const bits = await crypto.subtle.deriveBits({ name: 'X25519', public: other }, own, 8 * LENGTH);
    return nonzero(new Uint8Array(bits));
  } catch (refused) {
    // The platform lacks it, or their key is of small order: the library tells which.
    if ((refused as Error).name === 'OperationError') return undefined;
    return withLibrary(key, theirs);
  } finally {
    encoded.fill(0);
  }
}

function withLibrary(key: Bytes, theirs: Bytes): Bytes | undefined {
  try {
    return nonzero(x25519.getSharedSecret(key, theirs) as Bytes);
  } catch {
    return undefined;
  }
}

function nonzero(secret: Bytes): Bytes | undefined {
  return secret.some((byte) => byte !== 0) ? secret : undefined;
}

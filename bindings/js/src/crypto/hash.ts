/** SHA-256 over a label and parts, and roots of Merkle trees. */
import { sha256 } from '@noble/hashes/sha2';
import { type Bytes, concat, u64, utf8 } from '../bytes.js';
import { rootOf } from './tree-hash.js';

/** Label and parts, each preceded by its length in eight big-endian bytes, so that no two lists are written alike. */
export function delimited(label: string, ...parts: readonly Uint8Array[]): Bytes {
  return concat(...[utf8(label), ...parts].flatMap((part) => [u64(part.length), part]));
}

/** The digest of a label and parts. */
export function labelledHash(label: string, ...parts: readonly Uint8Array[]): Bytes {
  return sha256(delimited(label, ...parts)) as Bytes;
}

/** The root of a Merkle tree (RFC 6962) over leaves. */
export function merkleRoot(leaves: readonly Uint8Array[]): Bytes {
  return rootOf(leaves.map((leaf) => concat(Uint8Array.of(0), leaf)));
}

const MASK = (1n << 64n) - 1n;

/** The public link hash h(session, t) = mix(mix(session ⊕ c) ⊕ t), with which window sums notice gaps. */
export function link(session: bigint, t: number): bigint {
  return mix(mix(session ^ 0x9e37_79b9_7f4a_7c15n) ^ BigInt(t));
}

function mix(z: bigint): bigint {
  const a = ((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & MASK;
  const b = ((a ^ (a >> 27n)) * 0x94d0_49bb_1331_11ebn) & MASK;
  return b ^ (b >> 31n);
}

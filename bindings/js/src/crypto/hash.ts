/** SHA-256 over a label and parts, and roots of Merkle trees. */
import { sha256 } from '@noble/hashes/sha2';
import { type Bytes, concat, u64, utf8 } from '../bytes.js';

/** Label and parts, each preceded by its length in eight big-endian bytes, so that no two lists are written alike. */
export function delimited(label: string, ...parts: readonly Uint8Array[]): Bytes {
  return concat(...[utf8(label), ...parts].flatMap((part) => [u64(part.length), part]));
}

/** The digest of a label and parts. */
export function labelledHash(label: string, ...parts: readonly Uint8Array[]): Bytes {
  return sha256(delimited(label, ...parts)) as Bytes;
}

/** The root of a Merkle tree (RFC 6962) over leaves, of which there is at least one. */
export function merkleRoot(leaves: readonly Uint8Array[]): Bytes {
  if (leaves.length === 0) return sha256(new Uint8Array(0)) as Bytes;
  let level = leaves.map((leaf) => {
    const hashed = new Uint8Array(leaf.length + 1);
    hashed.set(leaf, 1);
    return sha256(hashed);
  });
  const node = new Uint8Array(65);
  node[0] = 1;
  while (level.length > 1) {
    const above: Uint8Array[] = [];
    for (let i = 0; i < level.length; i += 2) {
      const [left, right] = [level[i] as Uint8Array, level[i + 1]];
      if (right === undefined) {
        above.push(left);
        continue;
      }
      node.set(left, 1);
      node.set(right, 33);
      above.push(sha256(node));
    }
    level = above;
  }
  return level[0] as Bytes;
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

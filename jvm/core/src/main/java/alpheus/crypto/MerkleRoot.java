// Roots of Merkle trees (RFC 6962).
package alpheus.crypto;

import java.security.MessageDigest;
import java.util.List;

/** The root of a Merkle tree (RFC 6962). Leaves and inner nodes are hashed differently. */
public final class MerkleRoot {
    private MerkleRoot() {}

    /**
     * The root over leaves.
     *
     * @param leaves their contents, in order; without any, it is the digest of nothing
     * @return 32 bytes
     */
    public static byte[] of(List<byte[]> leaves) {
        MessageDigest hash = Digests.sha256();
        byte[][] level = new byte[leaves.size()][];
        for (int i = 0; i < level.length; i++) {
            hash.update((byte) 0);
            level[i] = hash.digest(leaves.get(i));
        }
        int size = level.length;
        while (size > 1) {
            for (int left = 0; left < size; left += 2) {
                level[left / 2] = left + 1 < size ? node(hash, level[left], level[left + 1]) : level[left];
            }
            size = (size + 1) / 2;
        }
        return size == 0 ? hash.digest() : level[0];
    }

    private static byte[] node(MessageDigest hash, byte[] left, byte[] right) {
        hash.update((byte) 1);
        hash.update(left);
        return hash.digest(right);
    }
}

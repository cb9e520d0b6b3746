// Signs as one party: Ed25519 over labelled digests.
package alpheus.crypto;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.EdECPrivateKeySpec;
import java.security.spec.NamedParameterSpec;

/** Signs as one party. Signing is deterministic. Not safe for concurrent use. */
public final class SigningKey implements AutoCloseable {
    /** Bytes of a seed. */
    public static final int SEED = 32;

    private final SecretBytes seed;

    /**
     * The key that a seed determines.
     *
     * @param seed {@link #SEED} bytes, of which it takes ownership
     */
    public SigningKey(SecretBytes seed) {
        if (seed.length() != SEED) {
            throw new IllegalArgumentException("the seed of a signing key has " + SEED + " bytes");
        }
        this.seed = seed;
    }

    /**
     * Signs the labelled digest of a message.
     *
     * @param label what is signed, with its version
     * @param message the message
     * @return 64 bytes
     */
    public byte[] sign(String label, byte[] message) {
        try {
            PrivateKey key = KeyFactory.getInstance(VerifyingKey.NAME)
                    .generatePrivate(new EdECPrivateKeySpec(NamedParameterSpec.ED25519, seed.expose()));
            Signature signature = Signature.getInstance(VerifyingKey.NAME);
            signature.initSign(key);
            signature.update(LabelledHash.of(label, message));
            return signature.sign();
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks Ed25519", missing);
        }
    }

    /** Wipes the key. */
    @Override
    public void close() {
        seed.close();
    }
}

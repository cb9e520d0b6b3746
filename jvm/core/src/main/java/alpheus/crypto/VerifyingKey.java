// Checks what one party signed: Ed25519, strictly.
package alpheus.crypto;

import alpheus.crypto.CryptoException.Fault;
import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.EdECPoint;
import java.security.spec.EdECPublicKeySpec;
import java.security.spec.NamedParameterSpec;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Set;

/**
 * A public key of large order. It accepts what the Rust implementation accepts: no key and no point of
 * small order, only canonical forms, and the equation without the cofactor.
 */
public final class VerifyingKey {
    /** Bytes of a key. */
    public static final int LENGTH = 32;
    /** Bytes of a signature. */
    public static final int SIGNATURE = 64;

    static final String NAME = "Ed25519";

    private static final BigInteger PRIME = BigInteger.TWO.pow(255).subtract(BigInteger.valueOf(19));
    /** The y of all points whose order divides 8. */
    private static final Set<BigInteger> SMALL_ORDER = Set.of(
            BigInteger.ZERO, BigInteger.ONE, PRIME.subtract(BigInteger.ONE),
            y("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
            y("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"));

    private final byte[] bytes;
    private final PublicKey key;

    /**
     * Checks that bytes are a key.
     *
     * @param bytes {@link #LENGTH} of them
     * @throws CryptoException if they are not a point of large order in its canonical form
     */
    public VerifyingKey(byte[] bytes) throws CryptoException {
        if (bytes.length != LENGTH || !isOfLargeOrder(bytes)) {
            throw new CryptoException(Fault.INVALID_KEY);
        }
        this.bytes = bytes.clone();
        try {
            EdECPoint point = new EdECPoint(bytes[LENGTH - 1] < 0, y(bytes));
            key = KeyFactory.getInstance(NAME).generatePublic(new EdECPublicKeySpec(NamedParameterSpec.ED25519, point));
            // The platform finds out only here whether it is on the curve.
            Signature.getInstance(NAME).initVerify(key);
        } catch (GeneralSecurityException noPoint) {
            throw new CryptoException(Fault.INVALID_KEY);
        }
    }

    private static boolean isOfLargeOrder(byte[] point) {
        BigInteger y = y(point);
        return y.compareTo(PRIME) < 0 && !SMALL_ORDER.contains(y);
    }

    private static BigInteger y(String hex) {
        return y(HexFormat.of().parseHex(hex));
    }

    /** Little-endian, without the highest bit, which is the sign of x. */
    private static BigInteger y(byte[] point) {
        byte[] reversed = new byte[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            reversed[LENGTH - 1 - i] = point[i];
        }
        reversed[0] &= 0x7f;
        return new BigInteger(1, reversed);
    }

    /**
     * Its bytes.
     *
     * @return a copy
     */
    public byte[] bytes() {
        return bytes.clone();
    }

    /**
     * Checks a signature over the labelled digest of a message.
     *
     * @param label what is signed, with its version
     * @param message the message
     * @param signature 64 bytes
     * @throws CryptoException if key, label, message or signature differs
     */
    public void verify(String label, byte[] message, byte[] signature) throws CryptoException {
        if (signature.length != SIGNATURE || !isOfLargeOrder(Arrays.copyOf(signature, LENGTH))
                || !holds(LabelledHash.of(label, message), signature)) {
            throw new CryptoException(Fault.MISMATCH);
        }
    }

    private boolean holds(byte[] digest, byte[] signature) {
        try {
            Signature check = Signature.getInstance(NAME);
            check.initVerify(key);
            check.update(digest);
            return check.verify(signature);
        } catch (GeneralSecurityException malformed) {
            return false;
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof VerifyingKey that && Arrays.equals(that.bytes, bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }
}

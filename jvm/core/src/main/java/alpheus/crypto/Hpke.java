// Secrets that only one party can open: HPKE (RFC 9180).
package alpheus.crypto;

import alpheus.crypto.CryptoException.Fault;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;

/**
 * HPKE (RFC 9180), one message in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. A
 * sealed secret is the encapsulated key and then the ciphertext. Names are those of the RFC. See
 * docs/decisions/0034-hpke-of-the-jvm.md.
 */
final class Hpke {
    /** Bytes that sealing adds: the encapsulated key and the tag. */
    static final int OVERHEAD = X25519.LENGTH + 16;

    private static final int NONCE = 12;
    private static final byte[] NONE = new byte[0];
    private static final byte[] KEM = suite("KEM", 0x20);
    private static final byte[] SUITE = suite("HPKE", 0x20, 1, 3);

    private Hpke() {}

    private static byte[] suite(String name, int... numbers) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(name.getBytes(StandardCharsets.US_ASCII));
        for (int number : numbers) {
            out.write(number >> 8);
            out.write(number);
        }
        return out.toByteArray();
    }

    /** The private key that a seed determines. */
    static SecretBytes deriveKey(SecretBytes seed) {
        try (SecretBytes key = extract(KEM, NONE, "dkp_prk", seed.expose())) {
            return expand(KEM, key, "sk", NONE, X25519.LENGTH);
        }
    }

    /**
     * Seals for a key of large order, with the ephemeral key that a seed determines. The seed must be
     * random and used once.
     */
    static byte[] seal(byte[] recipient, byte[] info, byte[] data, SecretBytes secret, SecretBytes seed) {
        try (SecretBytes ephemeral = deriveKey(seed);
                SecretBytes agreed = X25519.agree(ephemeral, recipient).orElseThrow()) {
            byte[] encapsulated = X25519.publicHalf(ephemeral);
            byte[] sealed = crypt(Cipher.ENCRYPT_MODE, agreed, concat(encapsulated, recipient), info, data, secret.expose());
            return concat(encapsulated, sealed);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks ChaCha20-Poly1305", missing);
        }
    }

    /** Opens what was sealed for a key. */
    static SecretBytes open(SecretBytes key, byte[] own, byte[] info, byte[] data, byte[] sealed) throws CryptoException {
        if (sealed.length < OVERHEAD) {
            throw new CryptoException(Fault.DOES_NOT_OPEN);
        }
        byte[] encapsulated = Arrays.copyOf(sealed, X25519.LENGTH);
        byte[] ciphertext = Arrays.copyOfRange(sealed, X25519.LENGTH, sealed.length);
        try (SecretBytes agreed = X25519.agree(key, encapsulated)
                .orElseThrow(() -> new CryptoException(Fault.DOES_NOT_OPEN))) {
            return SecretBytes.takeOver(
                    crypt(Cipher.DECRYPT_MODE, agreed, concat(encapsulated, own), info, data, ciphertext));
        } catch (GeneralSecurityException refused) {
            throw new CryptoException(Fault.DOES_NOT_OPEN);
        }
    }

    /** ExtractAndExpand of the KEM, the key schedule, and the first message of the context. */
    private static byte[] crypt(int mode, SecretBytes agreed, byte[] keys, byte[] info, byte[] data, byte[] text)
            throws GeneralSecurityException {
        byte[] context = context(info);
        try (SecretBytes eae = extract(KEM, NONE, "eae_prk", agreed.expose());
                SecretBytes shared = expand(KEM, eae, "shared_secret", keys, X25519.LENGTH);
                SecretBytes secret = extract(SUITE, shared.expose(), "secret", NONE);
                SecretBytes key = expand(SUITE, secret, "key", context, 32);
                SecretBytes nonce = expand(SUITE, secret, "base_nonce", context, NONCE);
                WipedKey handle = new WipedKey("ChaCha20", key)) {
            Cipher cipher = Cipher.getInstance("ChaCha20-Poly1305");
            cipher.init(mode, handle, new IvParameterSpec(nonce.expose()));
            cipher.updateAAD(data);
            return cipher.doFinal(text);
        }
    }

    private static byte[] context(byte[] info) {
        byte[] none = extract(SUITE, NONE, "psk_id_hash", NONE).expose();
        return concat(new byte[1], none, extract(SUITE, NONE, "info_hash", info).expose());
    }

    private static SecretBytes extract(byte[] suite, byte[] salt, String label, byte[] secret) {
        // HMAC pads a short key with zeros, so no salt is as good as zeros.
        byte[] key = salt.length == 0 ? new byte[X25519.LENGTH] : salt.clone();
        byte[] input = labelled(suite, label, secret);
        try (SecretBytes salted = SecretBytes.takeOver(key)) {
            return SecretBytes.takeOver(Digests.hmac(salted).doFinal(input));
        } finally {
            Arrays.fill(input, (byte) 0);
        }
    }

    private static SecretBytes expand(byte[] suite, SecretBytes key, String label, byte[] info, int length) {
        byte[] size = {(byte) (length >> 8), (byte) length};
        return Hkdf.expand(Digests.hmac(key), concat(size, labelled(suite, label, info)), length);
    }

    private static byte[] labelled(byte[] suite, String label, byte[] rest) {
        return concat(
                "HPKE-v1".getBytes(StandardCharsets.US_ASCII), suite, label.getBytes(StandardCharsets.US_ASCII), rest);
    }

    private static byte[] concat(byte[]... parts) {
        byte[] whole = new byte[Arrays.stream(parts).mapToInt(part -> part.length).sum()];
        int at = 0;
        for (byte[] part : parts) {
            System.arraycopy(part, 0, whole, at, part.length);
            at += part.length;
        }
        return whole;
    }
}

// Primitives that every Java platform provides.
package alpheus.crypto;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Cipher;
import javax.crypto.Mac;

/** The platform's SHA-256, HMAC and AES. */
public final class Digests {
    private Digests() {}

    /**
     * A fresh SHA-256.
     *
     * @return the digest
     */
    public static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks SHA-256", missing);
        }
    }

    static Mac hmac(SecretBytes key) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            try (WipedKey handle = new WipedKey("HmacSHA256", key)) {
                mac.init(handle);
            }
            return mac;
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks HMAC-SHA256", missing);
        }
    }

    static Cipher counterMode() {
        try {
            return Cipher.getInstance("AES/CTR/NoPadding");
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks AES in counter mode", missing);
        }
    }
}

// A stream's device, as the policy manager knows it from the stream's placement.
package alpheus.flink;

import alpheus.crypto.CryptoException;
import alpheus.crypto.VerifyingKey;
import alpheus.tick.Opening;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;

/**
 * A stream's device. The policy manager has checked its certificate, and that the stream's placement names it.
 *
 * @param certificate digest of the certificate
 * @param key its key, 32 bytes
 */
record Device(byte[] certificate, byte[] key) {
    /** The key that verifies an opening; null if the device may not have signed it. */
    VerifyingKey keyFor(Opening opening) {
        boolean named = Arrays.equals(certificate, opening.certificate());
        return named ? verifying() : null;
    }

    /** Whether anything can be verified with its key. */
    boolean hasKey() {
        return verifying() != null;
    }

    private VerifyingKey verifying() {
        try {
            return new VerifyingKey(key);
        } catch (CryptoException unusable) {
            return null;
        }
    }

    void write(DataOutput out) throws IOException {
        out.write(certificate);
        out.write(key);
    }

    static Device read(DataInput in) throws IOException {
        byte[] certificate = new byte[Opening.DIGEST];
        byte[] key = new byte[VerifyingKey.LENGTH];
        in.readFully(certificate);
        in.readFully(key);
        return new Device(certificate, key);
    }
}

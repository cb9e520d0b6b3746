// Who a device is to the service, and how it reaches it.
package alpheus.tick;

import alpheus.crypto.SealingPublic;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import java.util.random.RandomGenerator;

/**
 * Who a device is to the service: its certified key, and the ingest key that its sessions' keys are sealed
 * for. It says nothing about values, which the stream's master secret protects.
 */
public final class DeviceIdentity implements AutoCloseable {
    private final VerifyingKey authority;
    private final SigningKey key;
    private final byte[] certificate;
    private final SealingPublic ingest;
    private final byte[] ingestId;

    /**
     * An identity.
     *
     * @param authority the key of the deployment's authority
     * @param key the device's signing key, of which it takes ownership
     * @param certificate digest of the device's certificate, {@link Opening#DIGEST} bytes
     * @param ingest the service's ingest key
     * @param ingestId digest of its certificate, {@link Opening#DIGEST} bytes
     */
    public DeviceIdentity(
            VerifyingKey authority, SigningKey key, byte[] certificate, SealingPublic ingest, byte[] ingestId) {
        if (certificate.length != Opening.DIGEST || ingestId.length != Opening.DIGEST) {
            throw new IllegalArgumentException("a certificate's digest has " + Opening.DIGEST + " bytes");
        }
        this.authority = authority;
        this.key = key;
        this.certificate = certificate.clone();
        this.ingest = ingest;
        this.ingestId = ingestId.clone();
    }

    VerifyingKey authority() {
        return authority;
    }

    byte[] certificate() {
        return certificate.clone();
    }

    byte[] ingestId() {
        return ingestId.clone();
    }

    byte[] sign(String label, byte[] message) {
        return key.sign(label, message);
    }

    byte[] seal(String label, byte[] context, SecretBytes secret, RandomGenerator random) {
        return ingest.seal(label, context, secret, random);
    }

    /** Wipes the device's key. */
    @Override
    public void close() {
        key.close();
    }
}

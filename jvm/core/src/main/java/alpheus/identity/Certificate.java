// Certificates of a deployment's authority.
package alpheus.identity;

import alpheus.crypto.CryptoException;
import alpheus.crypto.LabelledHash;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SealingPublic;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import alpheus.identity.CertificateException.Fault;
import java.nio.BufferUnderflowException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * The authority's statement that keys belong to one party, after its signature was checked.
 *
 * @param role the party's role
 * @param verifying verifies its messages
 * @param sealing keys of sessions are sealed for this key, if it receives any
 * @param digest identifies the certificate, 32 bytes
 */
public record Certificate(Role role, VerifyingKey verifying, Optional<SealingPublic> sealing, byte[] digest) {
    private static final String LABEL = "alpheus/certificate/v2";
    private static final String PROBE = "alpheus/certificate/probe/v1";
    private static final int KEY = 32;
    private static final int ID = 16;

    /** What a party is. The ordinal is the number in the certificate. */
    public enum Role {
        /** Plans queries and coordinates windows. */
        SERVICE,
        /** Guards its owners' streams. */
        CONTROLLER,
        /** Reads results that are sealed to its key. */
        CONSUMER,
        /** Owns streams. */
        OWNER,
        /** Sends a stream's events. */
        DEVICE,
        /** Takes devices' frames for the service. */
        INGEST;

        /** Whether it has a key agreement key. */
        boolean agrees() {
            return this == CONTROLLER || this == CONSUMER;
        }

        /** Whether keys of sessions are sealed for it. */
        boolean unseals() {
            return this == INGEST;
        }
    }

    /**
     * Reads a certificate of a role, and checks that the authority signed it.
     *
     * @param text its hexadecimal digits, as {@code alpheus ca} writes them
     * @param authority the key of the deployment's authority
     * @param role the role that is needed
     * @return the certificate
     * @throws CertificateException which says what is wrong
     */
    public static Certificate read(String text, VerifyingKey authority, Role role) throws CertificateException {
        byte[] content;
        byte[] signature;
        try {
            PostcardReader signed = new PostcardReader(HexFormat.of().parseHex(text.strip()));
            content = signed.bytes();
            signature = signed.raw(VerifyingKey.SIGNATURE);
            expect(signed.isAtEnd());
        } catch (IllegalArgumentException | BufferUnderflowException malformed) {
            throw new CertificateException(Fault.NOT_A_CERTIFICATE);
        }
        try {
            authority.verify(LABEL, content, signature);
        } catch (CryptoException forged) {
            throw new CertificateException(Fault.UNSIGNED);
        }
        return parse(content).of(role);
    }

    private static Certificate parse(byte[] content) throws CertificateException {
        try {
            PostcardReader in = new PostcardReader(content);
            // The subject, which stays when a certificate is renewed.
            in.raw(ID);
            long role = in.number();
            expect(role >= 0 && role < Role.values().length);
            // The name, for people.
            in.bytes();
            VerifyingKey verifying = new VerifyingKey(in.raw(KEY));
            boolean agrees = in.some();
            if (agrees) {
                in.raw(KEY);
            }
            Optional<SealingPublic> sealing =
                    in.some() ? Optional.of(new SealingPublic(in.raw(KEY))) : Optional.empty();
            // The digest of the hybrid key for master secrets, which are not sealed here.
            boolean isHybrid = in.some();
            if (isHybrid) {
                in.raw(KEY);
            }
            Certificate read = new Certificate(
                    Role.values()[(int) role], verifying, sealing, LabelledHash.of(LABEL, content));
            boolean hasKeys = read.role.agrees() == agrees
                    && read.role.agrees() == isHybrid
                    && read.role.unseals() == sealing.isPresent();
            if (!hasKeys) {
                throw new CertificateException(Fault.KEYS);
            }
            expect(in.isAtEnd());
            return read;
        } catch (BufferUnderflowException malformed) {
            throw new CertificateException(Fault.NOT_A_CERTIFICATE);
        } catch (CryptoException refused) {
            throw new CertificateException(Fault.KEYS);
        }
    }

    private static void expect(boolean good) throws CertificateException {
        if (!good) {
            throw new CertificateException(Fault.NOT_A_CERTIFICATE);
        }
    }

    private Certificate of(Role wanted) throws CertificateException {
        if (role != wanted) {
            throw new CertificateException(Fault.ROLE, word(role), word(wanted));
        }
        return this;
    }

    /**
     * The key that this certificate is for.
     *
     * @param seed its seed, of which this takes ownership
     * @return the key
     * @throws CertificateException if it is another key's
     */
    public SigningKey signingKey(SecretBytes seed) throws CertificateException {
        SigningKey key = new SigningKey(seed);
        byte[] probe = new byte[0];
        try {
            verifying.verify(PROBE, probe, key.sign(PROBE, probe));
            return key;
        } catch (CryptoException another) {
            key.close();
            throw new CertificateException(Fault.OTHER_SEED);
        }
    }

    /**
     * The one of several certificates that a sealing key is for.
     *
     * @param certificates the certificates
     * @param seed the key's seed, which is not closed
     * @return the certificate
     * @throws CertificateException if it is none's
     */
    public static Certificate ofKey(List<Certificate> certificates, SecretBytes seed) throws CertificateException {
        try (SealingKey key = SealingKey.fromSeed(seed)) {
            for (Certificate each : certificates) {
                if (each.sealing.isPresent() && Arrays.equals(each.sealing.get().bytes(), key.publicHalf())) {
                    return each;
                }
            }
        }
        throw new CertificateException(Fault.OTHER_SEED);
    }

    private static String word(Role role) {
        return role.name().toLowerCase(Locale.ROOT);
    }
}

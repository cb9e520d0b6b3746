// The first frame of a session.
package alpheus.tick;

import alpheus.crypto.CryptoException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.TagKey;
import alpheus.crypto.VerifyingKey;
import alpheus.tick.TickFrameException.Fault;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * The first frame of a session. The device signs it, and seals the session's key for the service in it. A
 * view of received bytes; the claim counts only after {@link #verify}, {@link #openKey} and the frame's MAC.
 */
public final class Opening {
    /** Bytes of a sealed session key. */
    public static final int SEALED = 80;
    /** Bytes of a certificate's digest, which identifies the device's and the ingest key. */
    public static final int DIGEST = 32;

    static final String SESSION_KEY_LABEL = "alpheus/session-key/v2";
    static final String OPENING_LABEL = "alpheus/opening/v2";
    /** Bytes up to the sealed key, which it is sealed over. */
    private static final int CONTEXT = 82;
    private static final int SIGNED = CONTEXT + SEALED + DIGEST;
    /** Bytes of the frame. */
    public static final int LENGTH = SIGNED + VerifyingKey.SIGNATURE + TagKey.TAG;

    private final byte[] bytes;
    private final Claim claim;
    private final byte[] ingest;
    private final Previous previous;

    private Opening(byte[] bytes, Claim claim, byte[] ingest, Previous previous) {
        this.bytes = bytes;
        this.claim = claim;
        this.ingest = ingest;
        this.previous = previous;
    }

    static Opening parse(byte[] bytes) throws TickFrameException {
        Bytes fields = Bytes.of(bytes, LENGTH);
        if (bytes.length > LENGTH) {
            throw new TickFrameException(Fault.TOO_LONG, bytes.length, LENGTH);
        }
        long session = fields.number();
        long at = fields.time();
        byte[] tag = fields.take(TagKey.TAG);
        byte[] ingest = fields.take(DIGEST);
        byte known = fields.octet();
        Previous before = new Previous(fields.number(), fields.time());
        boolean isNone = known == 0 && before.session() == 0 && before.last() == 0;
        if (known != 1 && !isNone) {
            throw new TickFrameException(Fault.PREVIOUS_FLAG, known & 0xff);
        }
        return new Opening(bytes, claim(session, at, tag), ingest, isNone ? null : before);
    }

    private static Claim claim(long session, long at, byte[] tag) {
        return new Claim(ClaimKind.OPENING, session, at, at, 0, Root.NONE, tag);
    }

    /** Makes the frame, without the MAC of the session's key, for which there is room at its end. */
    static byte[] make(
            Claim claim, Optional<Previous> previous, SecretBytes key, DeviceIdentity device, OpeningContext context,
            RandomGenerator random) {
        ByteBuffer out = ByteBuffer.allocate(LENGTH).order(ByteOrder.LITTLE_ENDIAN);
        out.put(TickFrame.code(ClaimKind.OPENING)).putLong(claim.session()).putLong(claim.to()).put(claim.tag());
        out.put(device.ingestId());
        Previous before = previous.orElse(new Previous(0, 0));
        out.put((byte) (previous.isPresent() ? 1 : 0)).putLong(before.session()).putLong(before.last());
        out.put(device.seal(SESSION_KEY_LABEL, context.with(out.array(), CONTEXT), key, random));
        out.put(device.certificate());
        out.put(device.sign(OPENING_LABEL, context.with(out.array(), SIGNED)));
        return out.array();
    }

    /**
     * The claim of the session's first border.
     *
     * @return the claim
     */
    public Claim claim() {
        return claim;
    }

    /**
     * The ingest key that the session's key is sealed for: the digest of its certificate.
     *
     * @return a copy
     */
    public byte[] ingestId() {
        return ingest.clone();
    }

    /**
     * The session before it, if the device knows it.
     *
     * @return the session
     */
    public Optional<Previous> previous() {
        return Optional.ofNullable(previous);
    }

    /**
     * The digest of the certificate of the device that signed it.
     *
     * @return a copy
     */
    public byte[] certificate() {
        return Arrays.copyOfRange(bytes, CONTEXT + SEALED, SIGNED);
    }

    /**
     * Checks that a device signed it for this stream.
     *
     * @param context where it belongs
     * @param device the key in the device's certificate
     * @throws CryptoException if it did not
     */
    public void verify(OpeningContext context, VerifyingKey device) throws CryptoException {
        byte[] signature = Arrays.copyOfRange(bytes, SIGNED, SIGNED + VerifyingKey.SIGNATURE);
        device.verify(OPENING_LABEL, context.with(bytes, SIGNED), signature);
    }

    /**
     * Opens the session's key. {@link #verify} comes first: anyone can seal.
     *
     * @param service the ingest key
     * @param context where it belongs
     * @return the key
     * @throws CryptoException if it was sealed for another ingest key, stream, schema, deployment or opening
     */
    public SessionKey openKey(SealingKey service, OpeningContext context) throws CryptoException {
        byte[] sealed = Arrays.copyOfRange(bytes, CONTEXT, CONTEXT + SEALED);
        try (SecretBytes key = service.open(SESSION_KEY_LABEL, context.with(bytes, CONTEXT), sealed)) {
            return new SessionKey(key, context.stream());
        }
    }
}

// The job's first check of a tick frame: whether it is its device's. Nothing counts before it.
package alpheus.flink;

import alpheus.crypto.CryptoException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.VerifyingKey;
import alpheus.stream.SchemaId;
import alpheus.stream.StreamId;
import alpheus.tick.Opening;
import alpheus.tick.OpeningContext;
import alpheus.tick.SessionKey;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;
import java.io.Serializable;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongFunction;

/**
 * Checks frames of one schema's streams. It holds the service's ingest keys, and keys of sessions in memory
 * only. None of them opens data.
 */
final class Ingest {
    /** Sessions whose keys are kept; others are unsealed again. Some 1 kB each. */
    private static final int KEPT = 1 << 15;

    private final VerifyingKey authority;
    private final SchemaId schema;
    private final long tick;
    private final Map<String, SealingKey> keys;
    private final Map<String, SessionKey> sessions = new LinkedHashMap<>(64, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, SessionKey> eldest) {
            return size() > KEPT;
        }
    };

    /** Where a task gets its checks from. Their keys are not in the job's graph, which Flink stores. */
    @FunctionalInterface
    interface Source extends Serializable {
        Ingest open(Shape shape);
    }

    /**
     * Checks of one schema's streams.
     *
     * @param keys the service's keys, by the digest of their certificates in hexadecimal
     */
    Ingest(VerifyingKey authority, SchemaId schema, long tick, Map<String, SealingKey> keys) {
        this.authority = authority;
        this.schema = schema;
        this.tick = tick;
        this.keys = keys;
    }

    /**
     * Checks a frame of a stream.
     *
     * @param device the stream's device, null if it is not known
     * @param opening gives the stored opening of a session
     */
    TickFrame check(String stream, byte[] bytes, Device device, LongFunction<Optional<byte[]>> opening)
            throws TickFrameException, RefusedException {
        TickFrame frame = TickFrame.parse(bytes, tick);
        OpeningContext context = new OpeningContext(authority, StreamId.parse(stream), schema);
        if (frame.opening().isPresent()) {
            verify(frame.opening().get(), bytes, device, context);
            return frame;
        }
        long session = frame.claim().session();
        if (!key(stream, session, opening, context).verifies(bytes)) {
            throw new RefusedException(Refusal.BAD_MAC);
        }
        return frame;
    }

    private void verify(Opening opening, byte[] bytes, Device device, OpeningContext context) throws RefusedException {
        VerifyingKey signer = device == null ? null : device.keyFor(opening);
        if (signer == null) {
            throw new RefusedException(Refusal.UNKNOWN_DEVICE);
        }
        // Before the ingest key: a device that hears of an unknown one opens another session.
        try {
            opening.verify(context, signer);
        } catch (CryptoException forged) {
            throw new RefusedException(Refusal.BAD_SIGNATURE);
        }
        if (!unseal(opening, ingestKey(opening), context).verifies(bytes)) {
            throw new RefusedException(Refusal.BAD_MAC);
        }
    }

    private SealingKey ingestKey(Opening opening) throws RefusedException {
        SealingKey ingest = keys.get(HexFormat.of().formatHex(opening.ingestId()));
        if (ingest == null) {
            throw new RefusedException(Refusal.UNKNOWN_INGEST_KEY);
        }
        return ingest;
    }

    private static SessionKey unseal(Opening opening, SealingKey ingest, OpeningContext context) throws RefusedException {
        try {
            return opening.openKey(ingest, context);
        } catch (CryptoException refused) {
            throw new RefusedException(Refusal.BAD_SESSION_KEY);
        }
    }

    /** The key of a session whose opening was accepted. */
    private SessionKey key(String stream, long session, LongFunction<Optional<byte[]>> stored, OpeningContext context)
            throws RefusedException, TickFrameException {
        String name = stream + "/" + session;
        SessionKey known = sessions.get(name);
        if (known == null) {
            byte[] bytes = stored.apply(session).orElseThrow(() -> new RefusedException(Refusal.UNKNOWN_SESSION));
            Opening opening = TickFrame.parse(bytes, tick).opening().orElseThrow();
            known = unseal(opening, ingestKey(opening), context);
            sessions.put(name, known);
        }
        return known;
    }
}

// Reads what a device sent with one frame a tick, as service and controller do.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.stream.StreamKeys;
import alpheus.stream.TickSum;
import alpheus.tick.ClaimKind;
import alpheus.tick.Claims;
import alpheus.tick.Opening;
import alpheus.tick.OpeningContext;
import alpheus.tick.SessionKey;
import alpheus.tick.Statement;
import alpheus.tick.TickFrame;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads what a device sent. Fails if a frame is not authentic, or if two stand at one border. */
final class TickReader {
    private final TestDevice device;
    private final StreamKeys keys;
    private final OpeningContext context;
    private final int words;
    private final Map<Long, SessionKey> sessions = new HashMap<>();
    private final Map<Long, Statement> last = new HashMap<>();
    private final Set<String> used = new HashSet<>();
    private final long[] sum;

    /** What was stated, in the order of the topic. */
    final List<Statement> statements = new ArrayList<>();
    final List<Opening> openings = new ArrayList<>();
    private long events;

    TickReader(TestDevice device, int words) throws Exception {
        this.device = device;
        this.words = words;
        this.keys = device.keys(words);
        this.context = new OpeningContext(device.identity.authority(), device.stream, device.schema.id());
        this.sum = new long[words];
    }

    TickReader read(List<byte[]> frames) throws Exception {
        for (byte[] frame : frames) {
            read(frame);
        }
        return this;
    }

    private void read(byte[] bytes) throws Exception {
        TickFrame frame = TickFrame.parse(bytes, device.schema.tick());
        long session = frame.claim().session();
        if (frame.opening().isPresent()) {
            Opening opening = frame.opening().get();
            opening.verify(context, device.identity.device());
            sessions.put(session, opening.openKey(device.identity.ingest(), context));
            openings.add(opening);
        }
        assertNotNull(sessions.get(session), "a frame before its opening");
        assertTrue(sessions.get(session).verifies(bytes));
        Statement stated = Claims.open(keys, frame.claim()).orElseThrow();
        assertTrue(used.add(session + " " + stated.to()), "two frames for one border");
        statements.add(stated);
        Statement before = last.put(session, stated);
        if (stated.kind() != ClaimKind.OPENING) {
            assertEquals(before.to(), stated.from(), "frames follow each other");
            boolean restarted = before.kind() == ClaimKind.OPENING
                    || before.from() / anchor() != before.to() / anchor();
            events += stated.count() - (restarted ? 0 : before.count());
        }
        if (frame.words() > 0) {
            long[] from = new long[words];
            long[] to = new long[words];
            keys.keyVector(session, stated.from(), from);
            keys.keyVector(session, stated.to(), to);
            TickSum.add(sum, frame.ciphertext(words));
            for (int i = 0; i < words; i++) {
                sum[i] += from[i] - to[i];
            }
        }
    }

    private long anchor() {
        return ((alpheus.schema.Frames.Ticks) device.schema.frames()).anchor();
    }

    /** The sum of all ticks, opened. */
    long[] sum() {
        return sum;
    }

    /** The number of events, as stated. */
    long events() {
        return events;
    }

    Set<Long> sessions() {
        return sessions.keySet();
    }

    /** The kinds of frames, in the order of the topic. */
    List<ClaimKind> kinds() {
        return statements.stream().map(Statement::kind).toList();
    }
}

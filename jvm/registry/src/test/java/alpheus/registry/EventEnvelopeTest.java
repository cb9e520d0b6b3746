// Events as Avro: what another library reads, and what is rejected.
package alpheus.registry;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.crypto.SecretBytes;
import alpheus.registry.RegistryException.Fault;
import alpheus.stream.Frame;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.SchemaId;
import alpheus.stream.Session;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.junit.jupiter.api.Test;

class EventEnvelopeTest {
    private static final int ID = 0x01020304;
    private static final long TICK = 1_000_000L;
    private static final long NOON = 19_675L * 86_400_000_000L + 43_200_000_000L;

    /** An opening, data, a border, a closing border. */
    private static List<byte[]> frames() throws Exception {
        List<byte[]> frames = new ArrayList<>();
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(new byte[MasterSecret.LENGTH]));
        StreamId stream = new StreamId(new byte[StreamId.LENGTH]);
        SchemaId schema = new SchemaId(new byte[SchemaId.LENGTH]);
        try (Producer producer = new Producer(master, stream, schema, TICK, 3)) {
            Session session = producer.open(new Start.First(), NOON, new Random(7), frames::add);
            session.event(NOON + 5, vector -> vector[0] += 3);
            session.advance(NOON + TICK);
            session.close(NOON + 2 * TICK);
        }
        return frames;
    }

    @Test
    void framesSurviveARoundTrip() throws Exception {
        for (byte[] frame : frames()) {
            byte[] record = EventEnvelope.write(ID, Frame.parse(frame));
            assertEquals(ID, WireFormat.id(record));
            assertArrayEquals(frame, EventEnvelope.read(ID, record));
        }
    }

    /** Avro's own library stands for any tool. */
    @Test
    void anyAvroToolReadsTheFields() throws Exception {
        Schema schema = new Schema.Parser().parse(EventEnvelope.SCHEMA);
        assertEquals(EventEnvelope.NAME, schema.getFullName());
        for (byte[] bytes : frames()) {
            Frame frame = Frame.parse(bytes);
            byte[] record = EventEnvelope.write(ID, frame);
            var in = DecoderFactory.get()
                    .binaryDecoder(record, WireFormat.HEAD, record.length - WireFormat.HEAD, null);
            GenericRecord read = new GenericDatumReader<GenericRecord>(schema).read(null, in);
            assertEquals(frame.kind().name().toLowerCase(Locale.ROOT), read.get("kind").toString());
            assertEquals(frame.session(), read.get("session"));
            assertEquals(frame.time(), read.get("time"));
            assertEquals(frame.count(), read.get("count"));
            assertEquals(ByteBuffer.wrap(frame.tag()), read.get("tag"));
            ByteBuffer words = ((ByteBuffer) read.get("ciphertext")).order(ByteOrder.LITTLE_ENDIAN);
            assertEquals(frame.words() * Long.BYTES, words.remaining());
            assertEquals(true, in.isEnd());
        }
    }

    private static void assertRefused(Fault fault, byte[] record) {
        assertEquals(fault, assertThrows(RegistryException.class, () -> EventEnvelope.read(ID, record)).fault());
    }

    @Test
    void invalidRecordsAreRejected() throws Exception {
        assertRefused(Fault.NO_WIRE_FORMAT, new byte[0]);
        assertRefused(Fault.NO_WIRE_FORMAT, new byte[] {0, 1, 2});
        assertRefused(Fault.NO_WIRE_FORMAT, frames().get(1));
        for (byte[] frame : frames()) {
            byte[] record = EventEnvelope.write(ID, Frame.parse(frame));
            for (int length = 0; length < record.length; length++) {
                assertRefused(Fault.NO_WIRE_FORMAT, Arrays.copyOf(record, length));
            }
            assertRefused(Fault.NO_WIRE_FORMAT, Arrays.copyOf(record, record.length + 1));
            assertRefused(Fault.OTHER_SCHEMA, EventEnvelope.write(ID + 1, Frame.parse(frame)));
        }
    }

    /** Any bytes give a frame or an error. */
    @Test
    void noBytesBreakTheReader() throws Exception {
        Random random = new Random(1);
        byte[] good = EventEnvelope.write(ID, Frame.parse(frames().get(2)));
        for (int i = 0; i < 20_000; i++) {
            byte[] bad = good.clone();
            for (int flips = random.nextInt(4); flips >= 0; flips--) {
                bad[WireFormat.HEAD + random.nextInt(bad.length - WireFormat.HEAD)] = (byte) random.nextInt();
            }
            try {
                Frame.parse(EventEnvelope.read(ID, bad));
            } catch (RegistryException refused) {
                assertEquals(Fault.NO_WIRE_FORMAT, refused.fault());
            }
        }
    }
}

// Devices of a bench: each event as a frame, as the same vector unencrypted, and as raw attributes.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.crypto.SecretBytes;
import alpheus.encode.Row;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.Session;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import alpheus.stream.TickSum;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Devices whose keys are all in one process, as only a benchmark may do. It knows the correct sums and the
 * tokens of every window.
 */
final class BenchDevices implements AutoCloseable {
    /** Receives what a device sends. */
    @FunctionalInterface
    interface Sink {
        void send(int stream, Form form, long micros, byte[] value);
    }

    /** The content of a record. */
    enum Form {
        /** Encrypted. */
        FRAMES,
        /** The same words, not encrypted. */
        VECTORS,
        /** Raw attributes. */
        RAW
    }

    private final BenchApplication application;
    private final long start;
    private final List<Form> forms;
    private final Sink sink;
    private final Random random = new Random(7);
    private final Row row;
    private final List<StreamKeys> keys = new ArrayList<>();
    private final List<Session> sessions = new ArrayList<>();
    private final List<long[]> truths = new ArrayList<>();
    private final List<long[]> tokens = new ArrayList<>();

    BenchDevices(BenchApplication application, int streams, long start, List<Form> forms, Sink sink)
            throws AlpheusException {
        this.application = application;
        this.start = start;
        this.forms = forms;
        this.sink = sink;
        this.row = application.encoder().row();
        for (int each = 0; each < streams && forms.contains(Form.FRAMES); each++) {
            open(each);
        }
    }

    private void open(int stream) throws AlpheusException {
        Producer producer = new Producer(
                master(stream), id(stream), application.schema().id(), tick(), application.words());
        keys.add(new StreamKeys(master(stream), id(stream), application.schema().id(), application.words()));
        sessions.add(producer.open(new Start.First(), start, random, frame ->
                sink.send(stream, Form.FRAMES, last(frame), frame)));
    }

    private static long last(byte[] frame) {
        return ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getLong(9);
    }

    static StreamId id(int stream) {
        return new StreamId(ByteBuffer.allocate(StreamId.LENGTH).putInt(stream).array());
    }

    private static MasterSecret master(int stream) {
        return new MasterSecret(SecretBytes.takeOver(
                ByteBuffer.allocate(MasterSecret.LENGTH).putInt(stream).array()));
    }

    long tick() {
        return application.schema().tick();
    }

    /** One event of a stream in each form. */
    void event(int stream, int event, long micros) throws AlpheusException {
        long[] values = application.values(stream, event);
        int window = (int) ((micros - start) / tick());
        row.clear();
        BenchApplication.fill(application.schema().attributes(), values, row);
        long[] vector = new long[application.words()];
        application.encoder().encode(row, random, vector);
        TickSum.add(at(truths, window), vector);
        if (forms.contains(Form.FRAMES)) {
            sessions.get(stream).event(micros, plain -> TickSum.add(plain, vector));
        }
        if (forms.contains(Form.VECTORS)) {
            sink.send(stream, Form.VECTORS, micros, bytes(vector));
        }
        if (forms.contains(Form.RAW)) {
            sink.send(stream, Form.RAW, micros, bytes(values));
        }
    }

    private static byte[] bytes(long[] longs) {
        ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES * longs.length).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(longs);
        return bytes.array();
    }

    /** Sends all borders up to a time. The tokens of each window are then known. */
    void borders(long micros) throws AlpheusException {
        for (int stream = 0; stream < sessions.size(); stream++) {
            long from = sessions.get(stream).nextBorder() - tick();
            sessions.get(stream).advance(micros);
            TickSum.add(at(tokens, (int) ((from - start) / tick())), difference(stream, from, from + tick()));
        }
    }

    private long[] difference(int stream, long from, long to) {
        long[] first = new long[application.words()];
        long[] last = new long[application.words()];
        keys.get(stream).keyVector(sessions.get(stream).number(), from, first);
        keys.get(stream).keyVector(sessions.get(stream).number(), to, last);
        for (int i = 0; i < first.length; i++) {
            first[i] -= last[i];
        }
        return first;
    }

    private synchronized long[] at(List<long[]> windows, int window) {
        while (windows.size() <= window) {
            windows.add(new long[application.words()]);
        }
        return windows.get(window);
    }

    /** The sums of a window's events. */
    long[] truth(int window) {
        return at(truths, window);
    }

    /** The token of the one controller that has all streams. */
    long[] token(int window) {
        return at(tokens, window);
    }

    @Override
    public void close() {
        keys.forEach(StreamKeys::close);
    }
}

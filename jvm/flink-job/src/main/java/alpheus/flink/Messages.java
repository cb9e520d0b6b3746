// The messages into and out of the job. docs/protocol.md has the tables.
package alpheus.flink;

import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.BitSet;

/** Messages of the job, version 1. Numbers are big-endian; lists and texts follow their length. */
final class Messages {
    private static final int VERSION = 1;

    private Messages() {}

    /** Writes a message's body. */
    @FunctionalInterface
    interface Body {
        void write(DataOutputStream out) throws IOException;
    }

    /** The bytes of a message: version, kind, body. */
    static byte[] bytes(int kind, Body body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeByte(VERSION);
            out.writeByte(kind);
            body.write(out);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    /** A reader positioned after version and kind. */
    static DataInputStream open(byte[] bytes, int kind) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        if (in.readUnsignedByte() != VERSION || in.readUnsignedByte() != kind) {
            throw new IOException("a message of version 1 and kind " + kind + " is expected");
        }
        return in;
    }

    static int kind(byte[] bytes) {
        return bytes.length > 1 && bytes[0] == VERSION ? bytes[1] : -1;
    }

    /**
     * Where a record is in its topic.
     *
     * @param partition its partition
     * @param offset its offset
     */
    record Place(int partition, long offset) {
        /** Of a record whose place was not kept. */
        static final Place UNKNOWN = new Place(-1, -1);

        private static final int BYTES = Integer.BYTES + Long.BYTES;

        boolean isKnown() {
            return offset >= 0;
        }
    }

    /**
     * Into the job, keyed by stream: a frame from the topic.
     *
     * @param stream the record's key in hexadecimal
     * @param place where the record is
     * @param frame the record's value
     */
    record FrameIn(String stream, Place place, byte[] frame) {
        static final int KIND = 1;

        private static final int STREAM_AT = 2 + Short.BYTES;

        /** A frame that waited in state, which does not say where it came from. */
        FrameIn(String stream, byte[] frame) {
            this(stream, Place.UNKNOWN, frame);
        }

        byte[] bytes() {
            byte[] bytes = new byte[STREAM_AT + stream.length() + Place.BYTES + Integer.BYTES + frame.length];
            ByteBuffer out = ByteBuffer.wrap(bytes).put((byte) VERSION).put((byte) KIND);
            out.putShort((short) stream.length()).put(stream.getBytes(StandardCharsets.US_ASCII));
            out.putInt(place.partition()).putLong(place.offset());
            out.putInt(frame.length).put(frame);
            return bytes;
        }

        static FrameIn read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new FrameIn(in.readUTF(), new Place(in.readInt(), in.readLong()), Wire.readBytes(in));
        }

        /** The stream of a message, without a copy of its frame. */
        static String streamOf(byte[] bytes) {
            return new String(bytes, STREAM_AT, streamLength(bytes), StandardCharsets.US_ASCII);
        }

        /** Where the frame of a message starts. */
        static int frameAt(byte[] bytes) {
            return STREAM_AT + streamLength(bytes) + Place.BYTES + Integer.BYTES;
        }

        /** The frame of a message, as a view of it. */
        static Frame frameOf(byte[] bytes) throws FrameException {
            return Frame.parse(bytes, frameAt(bytes));
        }

        private static int streamLength(byte[] bytes) {
            return (bytes[2] & 0xff) << 8 | bytes[3] & 0xff;
        }
    }

    /**
     * Into the job, keyed by stream: the stream is in a plan.
     *
     * @param stream the stream in hexadecimal
     * @param plan the plan as {@link PlanStart} has it
     * @param position its position in the plan
     */
    record Join(String stream, PlanView plan, int position) {
        static final int KIND = 2;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                PlanStart.write(out, plan);
                out.writeInt(position);
            });
        }

        static Join read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Join(in.readUTF(), PlanStart.read(in), in.readInt());
        }
    }

    /**
     * Into the job, keyed by stream: the stream's device. The last one counts.
     *
     * @param stream the stream in hexadecimal
     * @param device its device
     */
    record DeviceIs(String stream, Device device) {
        static final int KIND = 15;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                device.write(out);
            });
        }

        static DeviceIs read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new DeviceIs(in.readUTF(), Device.read(in));
        }
    }

    /**
     * To all: a plan runs.
     *
     * @param plan the part of the plan that the sums need
     */
    record PlanStart(PlanView plan) {
        static final int KIND = 3;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> write(out, plan));
        }

        static PlanStart read(byte[] bytes) throws IOException {
            return new PlanStart(read(open(bytes, KIND)));
        }

        private static void write(DataOutputStream out, PlanView plan) throws IOException {
            out.writeUTF(plan.plan());
            out.writeLong(plan.window());
            out.writeLong(plan.grace());
            out.writeLong(plan.from());
            out.writeInt(plan.gaps());
            out.writeInt(plan.rows().length);
            for (int[] row : plan.rows()) {
                out.writeInt(row.length);
                for (int word : row) {
                    out.writeShort(word);
                }
            }
        }

        private static PlanView read(DataInputStream in) throws IOException {
            String plan = in.readUTF();
            long window = in.readLong();
            long grace = in.readLong();
            long from = in.readLong();
            int gaps = in.readInt();
            int[][] rows = new int[Wire.length(in)][];
            for (int i = 0; i < rows.length; i++) {
                rows[i] = new int[Wire.length(in)];
                for (int j = 0; j < rows[i].length; j++) {
                    rows[i][j] = in.readUnsignedShort();
                }
            }
            return new PlanView(plan, window, grace, from, gaps, rows);
        }
    }

    /**
     * To all: a plan has ended.
     *
     * @param plan its id
     */
    record PlanEnd(String plan) {
        static final int KIND = 4;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> out.writeUTF(plan));
        }

        static PlanEnd read(byte[] bytes) throws IOException {
            return new PlanEnd(open(bytes, KIND).readUTF());
        }
    }

    /**
     * To all: the opening set S of a window, as streams and as controllers. It is empty if the window failed.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param streams positions in the plan
     * @param digest the digest of these streams, see {@link SetDigest}
     * @param tokens the controllers whose tokens open the window
     */
    record Opening(String plan, long start, BitSet streams, long[] digest, TokenSet tokens) {
        static final int KIND = 5;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                Wire.writeBytes(out, streams.toByteArray());
                Wire.writeLongs(out, digest);
                Wire.writeBytes(out, tokens.controllers().toByteArray());
                Wire.writeLongs(out, tokens.digest());
                out.writeBoolean(tokens.masked());
                out.writeInt(tokens.rows());
            });
        }

        /** Whether a stream is in a set, without reading all of it. */
        static boolean hasStream(byte[] bytes, int position) {
            ByteBuffer in = ByteBuffer.wrap(bytes);
            int at = 2 + Short.BYTES + in.getShort(2) + Long.BYTES;
            int bit = at + Integer.BYTES + position / Byte.SIZE;
            return position / Byte.SIZE < in.getInt(at) && (bytes[bit] >> position % Byte.SIZE & 1) == 1;
        }

        /** The same set without controllers, for the stream sums. */
        Opening withoutControllers() {
            return new Opening(plan, start, streams, digest,
                    new TokenSet(new BitSet(), tokens.digest(), tokens.masked(), tokens.rows()));
        }

        static Opening read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Opening(
                    in.readUTF(), in.readLong(), BitSet.valueOf(Wire.readBytes(in)), Wire.readLongs(in),
                    new TokenSet(BitSet.valueOf(Wire.readBytes(in)), Wire.readLongs(in), in.readBoolean(), in.readInt()));
        }
    }

    /**
     * The controllers of an opening set.
     *
     * @param controllers positions in the plan's roster
     * @param digest the digest of these controllers, see {@link SetDigest}
     * @param masked whether each token has an opening share to subtract; false with one controller
     * @param rows words of a token: the rows of the plan's release
     */
    record TokenSet(BitSet controllers, long[] digest, boolean masked, int rows) {}

    /**
     * Out of the job: the task of the stream has added it to a plan, and has reported the windows before.
     * From now on it reports each window in which the stream is online.
     *
     * @param stream the stream in hexadecimal
     * @param plan the plan
     * @param position the stream's position in the plan
     */
    record Joined(String stream, String plan, int position) {
        static final int KIND = 13;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                out.writeUTF(plan);
                out.writeInt(position);
            });
        }

        static Joined read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Joined(in.readUTF(), in.readUTF(), in.readInt());
        }
    }

    /**
     * Out of the job, with each checkpoint: one task has already reported everything about windows that
     * ended, with their grace, by this time.
     *
     * @param task the number of the task
     * @param tasks the number of tasks
     * @param time its watermark, in microseconds
     */
    record Progress(int task, int tasks, long time) {
        static final int KIND = 12;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeInt(task);
                out.writeInt(tasks);
                out.writeLong(time);
            });
        }

        static Progress read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Progress(in.readInt(), in.readInt(), in.readLong());
        }
    }

    /**
     * Out of the job: a rejected record.
     *
     * @param stream the record's key in hexadecimal
     * @param reason the name of the reason
     * @param topic the record's topic, or an empty text for that of events
     * @param place where it is there
     * @param frame the record's value
     */
    record DeadLetter(String stream, String reason, String topic, Place place, byte[] frame) {
        static final int KIND = 8;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                out.writeUTF(reason);
                out.writeUTF(topic);
                out.writeInt(place.partition());
                out.writeLong(place.offset());
                Wire.writeBytes(out, frame);
            });
        }

        static DeadLetter read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new DeadLetter(in.readUTF(), in.readUTF(), in.readUTF(),
                    new Place(in.readInt(), in.readLong()), Wire.readBytes(in));
        }
    }

    /**
     * Into the job, keyed by plan, window and a share of the controllers: the answer of a controller.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param controller its position in the plan's roster
     * @param opens whether it is the opening share instead of the token
     * @param rows the words, as many as in the release
     */
    record Token(String plan, long start, int controller, boolean opens, long[] rows) {
        static final int KIND = 9;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                out.writeInt(controller);
                out.writeBoolean(opens);
                Wire.writeLongs(out, rows);
            });
        }

        static Token read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Token(in.readUTF(), in.readLong(), in.readInt(), in.readBoolean(), Wire.readLongs(in));
        }

        /** Its key in the job. */
        String key() {
            return keyOf(plan, start, controller % Parts.TokenShare.SHARES);
        }

        static String keyOf(String plan, long start, int share) {
            return plan + "/" + start + "/" + share;
        }
    }

    /**
     * Out of the job, once for each plan and window: the two sums that open it.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param streams the number of streams
     * @param streamDigest the digest of these streams
     * @param controllers the number of controllers
     * @param tokenDigest the digest of these controllers
     * @param ciphertexts the released words of the streams, summed
     * @param tokens the tokens, summed, minus opening shares
     */
    record WindowSum(
            String plan, long start, long streams, long[] streamDigest, long controllers, long[] tokenDigest,
            long[] ciphertexts, long[] tokens) {
        static final int KIND = 10;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                out.writeLong(streams);
                Wire.writeLongs(out, streamDigest);
                out.writeLong(controllers);
                Wire.writeLongs(out, tokenDigest);
                Wire.writeLongs(out, ciphertexts);
                Wire.writeLongs(out, tokens);
            });
        }

        static WindowSum read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new WindowSum(in.readUTF(), in.readLong(), in.readLong(), Wire.readLongs(in), in.readLong(),
                    Wire.readLongs(in), Wire.readLongs(in), Wire.readLongs(in));
        }
    }
}

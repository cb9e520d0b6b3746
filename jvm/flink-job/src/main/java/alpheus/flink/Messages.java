// What goes into the job and comes out of it, as bytes: docs/protocol.md has the tables.
package alpheus.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** Messages of the job, version 1: big-endian numbers, lists and texts after their length. */
final class Messages {
    private static final int VERSION = 1;

    private Messages() {}

    /** Writes a message's body. */
    @FunctionalInterface
    interface Body {
        void write(DataOutputStream out) throws IOException;
    }

    /** Bytes of a message: version, kind, body. */
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

    /** A reader behind version and kind. */
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
     * Into the job, keyed by stream: a frame as it stood in the topic.
     *
     * @param stream the record's key in hexadecimal
     * @param frame the record's value
     */
    record FrameIn(String stream, byte[] frame) {
        static final int KIND = 1;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                Wire.writeBytes(out, frame);
            });
        }

        static FrameIn read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new FrameIn(in.readUTF(), Wire.readBytes(in));
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
     * To all: a plan runs.
     *
     * @param plan what of it the sums need
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
     * To all: the streams whose sums open a window; none of a window that failed.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param streams positions in the plan
     * @param digest of these streams, see {@link StreamDigest}
     */
    record Opening(String plan, long start, BitSet streams, long[] digest) {
        static final int KIND = 5;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                Wire.writeBytes(out, streams.toByteArray());
                Wire.writeLongs(out, digest);
            });
        }

        static Opening read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Opening(
                    in.readUTF(), in.readLong(), BitSet.valueOf(Wire.readBytes(in)), Wire.readLongs(in));
        }
    }

    /**
     * Out of the job: what there is of one stream in one window.
     *
     * @param stream the stream in hexadecimal
     * @param plan the plan
     * @param start when the window starts
     * @param position the stream's position in the plan
     * @param checkSum the sum of its check words
     * @param judgement whether it is complete, and by which borders
     */
    record Summary(String stream, String plan, long start, int position, long checkSum, Judgement judgement) {
        static final int KIND = 6;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                out.writeUTF(plan);
                out.writeLong(start);
                out.writeInt(position);
                out.writeLong(checkSum);
                out.writeByte(judgement.isComplete() ? -1 : judgement.why().ordinal());
                out.writeInt(judgement.segments().size());
                for (Judgement.Segment segment : judgement.segments()) {
                    write(out, segment);
                }
            });
        }

        private static void write(DataOutputStream out, Judgement.Segment segment) throws IOException {
            out.writeLong(segment.session());
            out.writeLong(segment.from());
            out.writeBoolean(segment.opens());
            out.writeLong(segment.tagHigh());
            out.writeLong(segment.tagLow());
            out.writeInt(segment.marks().size());
            for (TickMark mark : segment.marks()) {
                mark.write(out);
            }
        }

        static Summary read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            String stream = in.readUTF();
            String plan = in.readUTF();
            long start = in.readLong();
            int position = in.readInt();
            long checkSum = in.readLong();
            int why = in.readByte();
            List<Judgement.Segment> segments = new ArrayList<>();
            long events = 0;
            for (int left = Wire.length(in); left > 0; left--) {
                Judgement.Segment segment = segment(in);
                events += segment.marks().stream().mapToLong(TickMark::events).sum();
                segments.add(segment);
            }
            Incomplete reason = why < 0 ? null : Incomplete.values()[why];
            return new Summary(stream, plan, start, position, checkSum, new Judgement(reason, events, segments));
        }

        private static Judgement.Segment segment(DataInputStream in) throws IOException {
            long session = in.readLong();
            long from = in.readLong();
            boolean opens = in.readBoolean();
            long tagHigh = in.readLong();
            long tagLow = in.readLong();
            List<TickMark> marks = new ArrayList<>();
            for (int left = Wire.length(in); left > 0; left--) {
                marks.add(TickMark.read(in));
            }
            return new Judgement.Segment(session, from, opens, tagHigh, tagLow, marks);
        }
    }

    /**
     * Out of the job, and between its parts: a sum over streams of one window.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param wanted how many streams the window's sum has
     * @param wantedDigest of all these streams
     * @param count how many streams are in this sum
     * @param digest of those
     * @param rows the released words, summed
     */
    record Sum(String plan, long start, long wanted, long[] wantedDigest, long count, long[] digest, long[] rows) {
        static final int KIND = 7;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                out.writeLong(wanted);
                Wire.writeLongs(out, wantedDigest);
                out.writeLong(count);
                Wire.writeLongs(out, digest);
                Wire.writeLongs(out, rows);
            });
        }

        static Sum read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new Sum(in.readUTF(), in.readLong(), in.readLong(), Wire.readLongs(in), in.readLong(),
                    Wire.readLongs(in), Wire.readLongs(in));
        }
    }

    /**
     * Out of the job: a record that was refused.
     *
     * @param stream the record's key in hexadecimal
     * @param reason the refusal's name
     * @param frame the record's value
     */
    record DeadLetter(String stream, String reason, byte[] frame) {
        static final int KIND = 8;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(stream);
                out.writeUTF(reason);
                Wire.writeBytes(out, frame);
            });
        }

        static DeadLetter read(byte[] bytes) throws IOException {
            DataInputStream in = open(bytes, KIND);
            return new DeadLetter(in.readUTF(), in.readUTF(), Wire.readBytes(in));
        }
    }
}

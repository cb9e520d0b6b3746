// The status of one stream in one window, for the policy manager.
package alpheus.flink;

import alpheus.tick.Claim;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Out of the job: the status of one stream in one window.
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
    /** Of a stream with a frame for each tick. */
    static final int OF_TICKS = 14;

    byte[] bytes() {
        return Messages.bytes(judgement.ofTicks() ? OF_TICKS : KIND, out -> {
            out.writeUTF(stream);
            out.writeUTF(plan);
            out.writeLong(start);
            out.writeInt(position);
            out.writeLong(checkSum);
            out.writeByte(judgement.isComplete() ? -1 : judgement.why().ordinal());
            if (judgement.ofTicks()) {
                writeClaims(out);
                return;
            }
            out.writeInt(judgement.segments().size());
            for (Judgement.Segment segment : judgement.segments()) {
                write(out, segment);
            }
        });
    }

    private void writeClaims(DataOutputStream out) throws IOException {
        out.writeInt(judgement.claims().size());
        for (List<Claim> claims : judgement.claims()) {
            ClaimBytes.write(out, claims);
        }
        out.writeBoolean(!judgement.conflict().isEmpty());
        for (Claim claim : judgement.conflict()) {
            ClaimBytes.write(out, claim);
        }
    }

    private static Judgement readClaims(DataInputStream in, Incomplete why) throws IOException {
        List<List<Claim>> claims = new ArrayList<>();
        for (int left = Wire.length(in); left > 0; left--) {
            claims.add(ClaimBytes.readAll(in));
        }
        List<Claim> conflict = new ArrayList<>();
        if (in.readBoolean()) {
            conflict.add(ClaimBytes.read(in));
            conflict.add(ClaimBytes.read(in));
        }
        return new Judgement(why, 0, List.of(), true, claims, conflict);
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
        boolean ofTicks = Messages.kind(bytes) == OF_TICKS;
        DataInputStream in = Messages.open(bytes, ofTicks ? OF_TICKS : KIND);
        String stream = in.readUTF();
        String plan = in.readUTF();
        long start = in.readLong();
        int position = in.readInt();
        long checkSum = in.readLong();
        int why = in.readByte();
        Incomplete reason = why < 0 ? null : Incomplete.values()[why];
        if (ofTicks) {
            return new Summary(stream, plan, start, position, checkSum, readClaims(in, reason));
        }
        List<Judgement.Segment> segments = new ArrayList<>();
        long events = 0;
        for (int left = Wire.length(in); left > 0; left--) {
            Judgement.Segment segment = segment(in);
            events += segment.marks().stream().mapToLong(TickMark::events).sum();
            segments.add(segment);
        }
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

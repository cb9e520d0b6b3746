// The messages between the job's parts. docs/protocol.md has the tables.
package alpheus.flink;

import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.Token;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** Messages between the job's parts. They have the same form as external messages, and are never in a topic. */
final class Parts {
    private Parts() {}

    /** The side of a window that a sum is of. */
    enum Side {
        /** Ciphertexts of streams. */
        STREAMS,
        /** Tokens of controllers, minus opening shares. */
        TOKENS
    }

    /**
     * Between the job's parts: a sum over some streams or controllers of one window's opening set.
     *
     * @param side the side
     * @param plan the plan
     * @param start when the window starts
     * @param wanted the number of members of the whole
     * @param wantedDigest the digest of the whole
     * @param count the number of members of this sum
     * @param digest the digest of these
     * @param rows the released words, summed
     */
    record Sum(
            Side side, String plan, long start, long wanted, long[] wantedDigest, long count, long[] digest,
            long[] rows) {
        static final int KIND = 7;

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeByte(side.ordinal());
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
            DataInputStream in = Messages.open(bytes, KIND);
            return new Sum(Side.values()[in.readByte()], in.readUTF(), in.readLong(), in.readLong(),
                    Wire.readLongs(in), in.readLong(), Wire.readLongs(in), Wire.readLongs(in));
        }
    }

    /**
     * Between the job's parts, keyed as tokens are: one share of an opening set's controllers.
     *
     * @param plan the plan
     * @param start when the window starts
     * @param share the share: the controllers with this position modulo 256
     * @param wanted the number of controllers of the whole set
     * @param wantedDigest the digest of the whole
     * @param controllers those of the share, by position divided by 256
     * @param masked whether each token has an opening share to subtract
     * @param rows words of a token
     */
    record TokenShare(
            String plan, long start, int share, long wanted, long[] wantedDigest, BitSet controllers, boolean masked,
            int rows) {
        static final int KIND = 11;
        /** The number of shares of a window's controllers. Each is summed separately. */
        static final int SHARES = 256;

        /** The shares that have members in a set. */
        static List<TokenShare> of(Opening set) {
            BitSet[] dealt = new BitSet[SHARES];
            BitSet all = set.tokens().controllers();
            for (int each = all.nextSetBit(0); each >= 0; each = all.nextSetBit(each + 1)) {
                BitSet own = dealt[each % SHARES] == null ? new BitSet() : dealt[each % SHARES];
                own.set(each / SHARES);
                dealt[each % SHARES] = own;
            }
            List<TokenShare> shares = new ArrayList<>();
            for (int share = 0; share < SHARES; share++) {
                if (dealt[share] != null) {
                    shares.add(new TokenShare(set.plan(), set.start(), share, all.cardinality(),
                            set.tokens().digest(), dealt[share], set.tokens().masked(), set.tokens().rows()));
                }
            }
            return shares;
        }

        /** Its key in the job. */
        String key() {
            return Token.keyOf(plan, start, share);
        }

        /** Positions of its controllers. */
        int[] own() {
            return controllers.stream().map(each -> each * SHARES + share).toArray();
        }

        byte[] bytes() {
            return Messages.bytes(KIND, out -> {
                out.writeUTF(plan);
                out.writeLong(start);
                out.writeInt(share);
                out.writeLong(wanted);
                Wire.writeLongs(out, wantedDigest);
                Wire.writeBytes(out, controllers.toByteArray());
                out.writeBoolean(masked);
                out.writeInt(rows);
            });
        }

        static TokenShare read(byte[] bytes) throws IOException {
            DataInputStream in = Messages.open(bytes, KIND);
            return new TokenShare(in.readUTF(), in.readLong(), in.readInt(), in.readLong(), Wire.readLongs(in),
                    BitSet.valueOf(Wire.readBytes(in)), in.readBoolean(), in.readInt());
        }
    }
}

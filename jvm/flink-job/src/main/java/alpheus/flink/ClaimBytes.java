// Claims in messages and state.
package alpheus.flink;

import alpheus.crypto.TagKey;
import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import alpheus.tick.Root;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Claims in messages and state. */
final class ClaimBytes {
    /** Bytes of a claim. */
    static final int LENGTH = 1 + 6 * Long.BYTES + TagKey.TAG;

    private ClaimBytes() {}

    static void write(DataOutput out, Claim claim) throws IOException {
        out.writeByte(claim.kind().ordinal());
        out.writeLong(claim.session());
        out.writeLong(claim.from());
        out.writeLong(claim.to());
        out.writeLong(claim.maskedCount());
        out.writeLong(claim.root().high());
        out.writeLong(claim.root().low());
        out.write(claim.tag());
    }

    static Claim read(DataInput in) throws IOException {
        int kind = in.readUnsignedByte();
        if (kind >= ClaimKind.values().length) {
            throw new IOException("the kind " + kind + " of a claim is unknown");
        }
        long session = in.readLong();
        long from = in.readLong();
        long to = in.readLong();
        long count = in.readLong();
        Root root = new Root(in.readLong(), in.readLong());
        byte[] tag = new byte[TagKey.TAG];
        in.readFully(tag);
        return new Claim(ClaimKind.values()[kind], session, from, to, count, root, tag);
    }

    static void write(DataOutput out, List<Claim> claims) throws IOException {
        out.writeInt(claims.size());
        for (Claim claim : claims) {
            write(out, claim);
        }
    }

    static List<Claim> readAll(DataInput in) throws IOException {
        List<Claim> claims = new ArrayList<>();
        for (int left = Wire.length(in); left > 0; left--) {
            claims.add(read(in));
        }
        return claims;
    }
}

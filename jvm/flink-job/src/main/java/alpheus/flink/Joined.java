// Out of the job: a stream's task has taken the stream up for a plan.
package alpheus.flink;

import java.io.DataInputStream;
import java.io.IOException;

/**
 * Out of the job: the task that has the stream has taken it up for a plan, and told of the windows before.
 * It tells of each window in which the stream is online.
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
        DataInputStream in = Messages.open(bytes, KIND);
        return new Joined(in.readUTF(), in.readUTF(), in.readInt());
    }
}

// Out of the job: how far one of its tasks has come.
package alpheus.flink;

import java.io.DataInputStream;
import java.io.IOException;

/**
 * Out of the job, with each checkpoint: all that one task has to say of windows that ended, with their grace, by a time
 * stands before this.
 *
 * @param task which task
 * @param tasks how many there are
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
        DataInputStream in = Messages.open(bytes, KIND);
        return new Progress(in.readInt(), in.readInt(), in.readLong());
    }
}

// How Flink keeps, copies and checkpoints a stream's state.
package alpheus.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * How Flink keeps, copies and checkpoints a stream's state: by a fixed form of ours, so that no state
 * depends on the names of our fields. On the heap state is an object; it is written at checkpoints alone.
 */
public final class StreamStateSerializer extends TypeSerializerSingleton<StreamState> {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean isImmutableType() {
        return false;
    }

    @Override
    public StreamState createInstance() {
        return new StreamState();
    }

    @Override
    public StreamState copy(StreamState from) {
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            from.write(new DataOutputStream(bytes));
            return StreamState.read(new DataInputStream(new ByteArrayInputStream(bytes.toByteArray())));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    @Override
    public StreamState copy(StreamState from, StreamState reuse) {
        return copy(from);
    }

    @Override
    public int getLength() {
        return -1;
    }

    @Override
    public void serialize(StreamState state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    public StreamState deserialize(DataInputView in) throws IOException {
        return StreamState.read(in);
    }

    @Override
    public StreamState deserialize(StreamState reuse, DataInputView in) throws IOException {
        return StreamState.read(in);
    }

    @Override
    public void copy(DataInputView in, DataOutputView out) throws IOException {
        StreamState.read(in).write(out);
    }

    @Override
    public TypeSerializerSnapshot<StreamState> snapshotConfiguration() {
        return new Snapshot();
    }

    /** Names the serializer in checkpoints. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<StreamState> {
        /** For Flink, which makes one by name. */
        public Snapshot() {
            super(StreamStateSerializer::new);
        }
    }
}

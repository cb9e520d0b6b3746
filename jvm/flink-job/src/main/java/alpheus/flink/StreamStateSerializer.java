// How Flink keeps, copies and checkpoints a stream's state.
package alpheus.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * How Flink keeps, copies and checkpoints a stream's state. The format is fixed and ours, so no state
 * depends on the names of our fields. On the heap state is an object. It is serialized at checkpoints only.
 *
 * <p>Checkpoints name format and schema: sums of another schema look the same but mean something else.
 */
public final class StreamStateSerializer extends TypeSerializer<StreamState> {
    private static final long serialVersionUID = 1L;
    /** The version of the format. Flink's own serializer snapshots, used before, have lower numbers. */
    private static final int FORM = 18;

    private final String schema;

    /**
     * A serializer of one schema's streams.
     *
     * @param schema the schema's id
     */
    public StreamStateSerializer(String schema) {
        this.schema = schema;
    }

    @Override
    public TypeSerializer<StreamState> duplicate() {
        return this;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof StreamStateSerializer serializer && serializer.schema.equals(schema);
    }

    @Override
    public int hashCode() {
        return schema.hashCode();
    }

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
        return new Snapshot(schema);
    }

    /** Identifies the serializer in checkpoints, by format and schema. */
    public static final class Snapshot implements TypeSerializerSnapshot<StreamState> {
        private int form = FORM;
        private String schema = "";

        /** For Flink, which creates an instance and then reads it. */
        public Snapshot() {}

        private Snapshot(String schema) {
            this.schema = schema;
        }

        @Override
        public int getCurrentVersion() {
            return FORM;
        }

        @Override
        public void writeSnapshot(DataOutputView out) throws IOException {
            out.writeUTF(schema);
        }

        @Override
        public void readSnapshot(int version, DataInputView in, ClassLoader classes) throws IOException {
            form = version;
            schema = version == FORM ? in.readUTF() : "";
        }

        @Override
        public TypeSerializer<StreamState> restoreSerializer() {
            return new StreamStateSerializer(schema);
        }

        @Override
        public TypeSerializerSchemaCompatibility<StreamState> resolveSchemaCompatibility(
                TypeSerializerSnapshot<StreamState> old) {
            boolean same = old instanceof Snapshot written && written.form == FORM && written.schema.equals(schema);
            return same ? TypeSerializerSchemaCompatibility.compatibleAsIs()
                    : TypeSerializerSchemaCompatibility.incompatible();
        }
    }
}

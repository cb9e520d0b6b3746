// What a stream's state has of tick frames, besides its plans and windows.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a stream's state has if each tick has a frame, besides its plans and windows. */
final class TickPart {
    /** Frames that wait for the device. Anyone who may write to the topic can send them. */
    private static final int MAX_UNCHECKED = 8;
    /** Ticks that wait for a plan. */
    private static final int MAX_WAITING = 64;

    private TickRuns runs = new TickRuns();
    /** The stream's device, null if it is not known. */
    private Device device;
    /** Frames that came before the device was known. Nothing of them has been checked. */
    private final List<byte[]> unchecked = new ArrayList<>();
    /** Ticks for plans that this task has not received yet. */
    private final Map<String, List<TickWords>> waiting = new LinkedHashMap<>();

    TickRuns runs() {
        return runs;
    }

    Device device() {
        return device;
    }

    /** Sets the device, and returns the frames that waited for it. */
    List<byte[]> setDevice(Device known) {
        device = known;
        List<byte[]> frames = List.copyOf(unchecked);
        unchecked.clear();
        return frames;
    }

    /** Keeps a frame until the device is known, if there is room. */
    boolean keep(byte[] frame) {
        return unchecked.size() < MAX_UNCHECKED && unchecked.add(frame);
    }

    boolean isUnused() {
        return runs.isEmpty() && device == null && unchecked.isEmpty();
    }

    /** A tick for a plan that is not known yet. */
    void await(String plan, TickWords tick) {
        List<TickWords> ticks = waiting.computeIfAbsent(plan, made -> new ArrayList<>());
        ticks.add(tick);
        if (ticks.size() > MAX_WAITING) {
            ticks.remove(0);
        }
    }

    /** The ticks that waited for a plan. */
    List<TickWords> waited(String plan) {
        List<TickWords> ticks = waiting.remove(plan);
        return ticks == null ? List.of() : ticks;
    }

    /** The stream is in no plan, and sends nothing. Its device stays. */
    void forget() {
        runs.clear();
        unchecked.clear();
    }

    void write(DataOutput out) throws IOException {
        runs.write(out);
        out.writeBoolean(device != null);
        if (device != null) {
            device.write(out);
        }
        out.writeInt(unchecked.size());
        for (byte[] frame : unchecked) {
            Wire.writeBytes(out, frame);
        }
        out.writeInt(waiting.size());
        for (Map.Entry<String, List<TickWords>> ticks : waiting.entrySet()) {
            out.writeUTF(ticks.getKey());
            out.writeInt(ticks.getValue().size());
            for (TickWords tick : ticks.getValue()) {
                tick.write(out);
            }
        }
    }

    static TickPart read(DataInput in) throws IOException {
        TickPart part = new TickPart();
        part.runs = TickRuns.read(in);
        part.device = in.readBoolean() ? Device.read(in) : null;
        for (int left = Wire.length(in); left > 0; left--) {
            part.unchecked.add(Wire.readBytes(in));
        }
        for (int left = Wire.length(in); left > 0; left--) {
            String plan = in.readUTF();
            for (int ticks = Wire.length(in); ticks > 0; ticks--) {
                part.await(plan, TickWords.read(in));
            }
        }
        return part;
    }
}

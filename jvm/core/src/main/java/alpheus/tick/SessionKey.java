// The key that a session's device shares with the service.
package alpheus.tick;

import alpheus.crypto.SecretBytes;
import alpheus.crypto.TagKey;
import alpheus.stream.StreamId;
import java.security.MessageDigest;
import java.util.Arrays;

/**
 * The key of a session, which the device shares with the service alone. It authenticates frames to the
 * service and opens nothing. Not safe for concurrent use.
 */
public final class SessionKey {
    /** Bytes of a key. */
    public static final int LENGTH = 32;

    private static final String LABEL = "alpheus/frame/v2";

    private final TagKey key;
    private final byte[] stream;

    /**
     * Expands a key.
     *
     * @param key {@link #LENGTH} bytes, which may be wiped afterwards
     * @param stream the stream of the session
     */
    public SessionKey(SecretBytes key, StreamId stream) {
        this.key = new TagKey(key);
        this.stream = stream.bytes();
    }

    /** Completes a frame: writes the MAC of what is before the room for it. */
    void finish(byte[] frame) {
        int length = frame.length - TagKey.TAG;
        System.arraycopy(key.tagOfStart(LABEL, stream, frame, length), 0, frame, length, TagKey.TAG);
    }

    /**
     * Checks the MAC at the end of a frame. A frame counts for nothing before. Takes constant time.
     *
     * @param frame the frame
     * @return whether the session's device sent it for this stream
     */
    public boolean verifies(byte[] frame) {
        int length = frame.length - TagKey.TAG;
        return length >= 0 && MessageDigest.isEqual(
                key.tagOfStart(LABEL, stream, frame, length), Arrays.copyOfRange(frame, length, frame.length));
    }
}

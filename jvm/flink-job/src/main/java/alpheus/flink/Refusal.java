// The reasons for dead letters.
package alpheus.flink;

import java.util.Locale;

/** The reason why a frame is rejected. The frame goes to the dead letters with this name and changes no sum. */
public enum Refusal {
    /** The bytes are not a frame, or one of another schema, or the record's key is not a stream. */
    MALFORMED,
    /** Its time is further ahead of the clock than the allowed skew. */
    FUTURE,
    /** It is a border between ticks. */
    BORDER_OFF_TICK,
    /** It is data on a tick, which only a border may have. */
    DATA_ON_TICK,
    /** It follows an event of an earlier tick: the border between is missing. */
    CROSSES_TICK,
    /** No opening border of its session has come. */
    UNKNOWN_SESSION,
    /** The session was opened before. */
    SESSION_KNOWN,
    /** The session opens before a time that the stream has already sent. */
    BACKDATED,
    /** The event is at or before its session's opening border. */
    BEFORE_OPENING,
    /** The event is after its session's closing border, or after the opening of the next. */
    SESSION_ENDED,
    /** The event belongs to a tick that is complete without it. */
    DUPLICATE,
    /** Every window that the event could belong to is settled. */
    LATE,
    /** The stream has sent more events in this tick than a window may hold. */
    OVER_CAPACITY,
    /** The stream opens sessions faster than windows are settled. */
    TOO_MANY_SESSIONS,
    /** The opening names no certificate of the stream's device. */
    UNKNOWN_DEVICE,
    /** The device did not sign the opening. */
    BAD_SIGNATURE,
    /** The session's key is sealed to an ingest key that the job does not have. */
    UNKNOWN_INGEST_KEY,
    /** The session's key does not open. */
    BAD_SESSION_KEY,
    /** The frame's MAC is not its session's. */
    BAD_MAC,
    /** Another frame for this border came first. */
    CONFLICTING_FRAME,
    /** The session has too many gaps in open windows. */
    TOO_MANY_GAPS;

    /**
     * Its name in dead letters and counters, the same as in the embedded deployment.
     *
     * @return the name
     */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}

// The reasons why a stream is incomplete in a window.
package alpheus.flink;

/** The reason why a stream is incomplete in a window. If several ticks are incomplete, it is the first one's. */
public enum Incomplete {
    /** Fewer events arrived than the border counts. */
    GAP,
    /** More events arrived than the border counts. */
    DUPLICATE,
    /** The number matches the border, but the chain of events does not. */
    BROKEN_CHAIN,
    /** The border at the end of a tick is missing. */
    MISSING_BORDER,
    /** The session died: another opened before its last tick was closed. */
    SESSION_DIED,
    /** It went offline or came online within the window. */
    OFFLINE,
    /** It sent more events than the schema's capacity. */
    OVER_CAPACITY,
    /** The number of words of an event is not that of the schema. */
    WRONG_LENGTH,
    /** The tick had started, or was complete, before the plan ran. */
    BEFORE_PLAN
}

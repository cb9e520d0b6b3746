// Why a stream is not complete in a window.
package alpheus.flink;

/** Why a stream is not complete in a window: where several ticks are not, the first one's reason. */
public enum Incomplete {
    /** Fewer events came than the border says. */
    GAP,
    /** More events came than the border says. */
    DUPLICATE,
    /** As many came as the border says, but not the chain that it ends. */
    BROKEN_CHAIN,
    /** The border at the end of a tick has not come. */
    MISSING_BORDER,
    /** The session died: another one opened before its last tick was closed. */
    SESSION_DIED,
    /** It went offline or came online within the window. */
    OFFLINE,
    /** It sent more events than the schema's capacity. */
    OVER_CAPACITY,
    /** An event had another number of words than the schema. */
    WRONG_LENGTH,
    /** The tick had begun, or was complete, before the plan ran. */
    BEFORE_PLAN
}

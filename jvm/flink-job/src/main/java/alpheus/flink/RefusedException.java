// A rejected frame.
package alpheus.flink;

import alpheus.AlpheusException;

/** A rejected frame. It has changed no sum. */
final class RefusedException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;

    RefusedException(Refusal refusal) {
        super(refusal.label());
        this.refusal = refusal;
    }

    Refusal refusal() {
        return refusal;
    }
}

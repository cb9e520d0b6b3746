// The root of what Alpheus refuses.
package alpheus;

/**
 * A refusal: it says where, whose fault, and how to mend it, and never holds a secret or a person's
 * value, so that it can be logged.
 */
public abstract class AlpheusException extends Exception {
    private static final long serialVersionUID = 1L;

    /**
     * A refusal.
     *
     * @param message what is wrong and how to mend it
     */
    protected AlpheusException(String message) {
        super(message);
    }
}

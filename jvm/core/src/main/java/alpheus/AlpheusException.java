// The base class of Alpheus errors.
package alpheus;

/**
 * An error that says where the problem is, who can fix it, and how. It never contains a secret or a
 * person's value, so it can be logged.
 */
public abstract class AlpheusException extends Exception {
    private static final long serialVersionUID = 1L;

    /**
     * A refusal.
     *
     * @param message what is wrong and how to fix it
     */
    protected AlpheusException(String message) {
        super(message);
    }
}

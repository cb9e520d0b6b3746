// An invalid document, and where the problem is.
package alpheus.document;

import alpheus.AlpheusException;

/** An invalid schema, and where the problem is. */
public final class DocumentException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    private final transient Position at;
    private final Problem problem;

    /**
     * A problem at a position.
     *
     * @param at the position
     * @param problem the problem
     * @param details values for the problem's message
     */
    public DocumentException(Position at, Problem problem, Object... details) {
        super(at + ": " + problem.say(details));
        this.at = at;
        this.problem = problem;
    }

    /**
     * The position of the problem.
     *
     * @return the position
     */
    public Position at() {
        return at;
    }

    /**
     * What is wrong.
     *
     * @return the problem
     */
    public Problem problem() {
        return problem;
    }
}

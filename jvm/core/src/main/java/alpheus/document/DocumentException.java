// Why a file that people write cannot be used, and where.
package alpheus.document;

import alpheus.AlpheusException;

/** Why a schema cannot be used, and where. */
public final class DocumentException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    private final transient Position at;
    private final Problem problem;

    /**
     * A problem at a place.
     *
     * @param at where
     * @param problem what
     * @param details what the problem's words leave open
     */
    public DocumentException(Position at, Problem problem, Object... details) {
        super(at + ": " + problem.say(details));
        this.at = at;
        this.problem = problem;
    }

    /**
     * Where it stands.
     *
     * @return the place
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

// The privacy budget of one owner for one attribute.
package alpheus.schema;

/**
 * The privacy budget of one owner for one attribute.
 * @param windowMicroEpsilon ε of one window, in millionths
 * @param totalMicroEpsilon ε in total, in millionths
 * @param attoDelta δ in total, in units of 10^-18; 0: pure ε
 * @param unit what is protected
 * @param period the period in microseconds for {@link Unit#PERSON_PER_PERIOD}, otherwise 0
 */
public record Budget(long windowMicroEpsilon, long totalMicroEpsilon, long attoDelta, Unit unit, long period) {
    /** The difference between two neighbouring inputs. */
    public enum Unit {
        /** One event. */
        EVENT,
        /** All of one person's events in one window. */
        PERSON_PER_WINDOW,
        /** All of one person's events in a period. */
        PERSON_PER_PERIOD
    }
}

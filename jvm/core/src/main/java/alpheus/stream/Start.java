// What a producer knows of its stream's past.
package alpheus.stream;

/** What a producer knows of its stream's past when it opens a session. */
public sealed interface Start {
    /**
     * The stream never had a session: its first may open at any tick, also in the past. Only who has just
     * made the stream's master secret, or replays a recording from its start, can know this.
     */
    record First() implements Start {}

    /**
     * There may have been a session: the next opens at the next tick of the producer's clock or later. What
     * an earlier session had not closed with a border is lost.
     *
     * @param now the producer's clock
     */
    record Again(long now) implements Start {}
}

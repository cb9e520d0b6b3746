// What a producer knows about its stream's past.
package alpheus.stream;

/** What a producer knows about its stream's past when it opens a session. */
public sealed interface Start {
    /**
     * The stream never had a session, so its first may open at any tick, also in the past. Only a caller
     * that has just created the stream's master secret, or replays a recording from its start, can know
     * this.
     */
    record First() implements Start {}

    /**
     * There may have been a session, so the next opens at the next tick of the producer's clock or later.
     * Events that an earlier session did not close with a border are lost.
     *
     * @param now the producer's clock
     */
    record Again(long now) implements Start {}
}

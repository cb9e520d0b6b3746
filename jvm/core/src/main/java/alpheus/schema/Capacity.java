// Upper bounds on the traffic that packing relies on.
package alpheus.schema;

/**
 * Upper bounds that packing relies on and the window sums enforce.
 *
 * @param population streams in one window at most
 * @param events events of one stream in one window at most
 */
public record Capacity(long population, long events) {
    /** Where a schema declares none: ten thousand streams of an event a second over an hour. */
    static final Capacity DEFAULT = new Capacity(10_000, 3_600);
}

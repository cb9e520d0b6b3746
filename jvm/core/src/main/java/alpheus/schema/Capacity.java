// Upper bounds on the traffic that packing relies on.
package alpheus.schema;

/**
 * Upper bounds that packing relies on and the window sums enforce.
 *
 * @param population maximum number of streams in one window
 * @param events maximum number of events of one stream in one window
 */
public record Capacity(long population, long events) {
    /** The default: ten thousand streams with one event a second over an hour. */
    static final Capacity DEFAULT = new Capacity(10_000, 3_600);
}

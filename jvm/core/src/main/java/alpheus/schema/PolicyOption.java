// One policy that owners may choose for an attribute.
package alpheus.schema;

import alpheus.document.Fraction;
import java.util.List;
import java.util.Optional;

/**
 * One policy that owners may choose for an attribute. A producer needs it for two reasons: the schema's id
 * covers it, and it decides which cells share a word.
 *
 * @param name its name
 * @param kind what it allows
 * @param attributes positions of the attributes that it is offered for, ascending
 * @param windows windows to choose from in microseconds, ascending; never empty
 * @param clients minimum populations to choose from, ascending; never empty
 * @param namedClients names that choices may use for some of these, ascending
 * @param generalise buckets that are the finest view of an attribute
 * @param budget privacy budget; present exactly for {@link Kind#DP_AGGREGATE}
 * @param to consumers it may be released to; empty: any
 * @param alpha minimum share of colluding controllers that a plan must tolerate
 * @param colluders how many controllers of the whole deployment a plan must take for colluders
 * @param dropout maximum share of controllers that may drop out
 * @param missingTicks ticks that may be missing where several sessions tile a window
 * @param splitPopulations whether a window may be split into several populations
 * @param trusted fingerprints of controllers that the owner trusts, ascending, in hexadecimal
 * @param verified whether it allows plans whose members decide what a row says
 */
public record PolicyOption(
        String name,
        Kind kind,
        List<Integer> attributes,
        List<Long> windows,
        List<Long> clients,
        List<NamedSize> namedClients,
        List<Generalise> generalise,
        Optional<Budget> budget,
        List<String> to,
        Fraction alpha,
        long colluders,
        Fraction dropout,
        long missingTicks,
        boolean splitPopulations,
        List<String> trusted,
        boolean verified) {
    /** What an option allows: the paper's three core functions and the two ends. */
    public enum Kind {
        /** Nothing. */
        PRIVATE,
        /** Everything, over any window that is a multiple of the tick. */
        PUBLIC,
        /** ΣS: sums over time of one stream. */
        STREAM_AGGREGATE,
        /** ΣM: sums over a population. */
        AGGREGATE,
        /** ΣDP: sums over a population with noise. */
        DP_AGGREGATE;

        boolean isOfMany() {
            return this == AGGREGATE || this == DP_AGGREGATE;
        }
    }

    /**
     * A named minimum population.
     *
     * @param name its name
     * @param size the population
     */
    public record NamedSize(String name, long size) {}
}

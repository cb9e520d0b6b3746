// Sum and number of events of a session since its last anchor.
package alpheus.tick;

import alpheus.stream.TickSum;
import java.util.Arrays;

/** Sum of the ciphertexts and number of events of a session since its last anchor. */
final class SessionSum {
    private final Blocks blocks;
    private final long[] words;
    private long events;

    SessionSum(Blocks blocks) {
        this.blocks = blocks;
        this.words = new long[blocks.words()];
    }

    /** Adds the ciphertext of a tick with this many events. */
    void add(long[] tick, long number) {
        TickSum.add(words, tick);
        events += number;
    }

    long events() {
        return events;
    }

    Root root() {
        return blocks.prefix(words);
    }

    /** Starts again, at an anchor. */
    void restart() {
        Arrays.fill(words, 0);
        events = 0;
    }
}

// Tokens under Flink's harness: which are summed, when, and how often.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import alpheus.flink.Messages.Opening;
import alpheus.flink.Parts.Side;
import alpheus.flink.Parts.Sum;
import alpheus.stream.TickSum;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.util.ListCollector;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TokenSumsTest {
    private KeyedOneInputStreamOperatorTestHarness<String, byte[], byte[]> flink;

    @BeforeEach
    void start() throws Exception {
        flink = harness(null);
    }

    @AfterEach
    void stop() throws Exception {
        flink.close();
    }

    private static KeyedOneInputStreamOperatorTestHarness<String, byte[], byte[]> harness(
            OperatorSubtaskState from) throws Exception {
        var harness = new KeyedOneInputStreamOperatorTestHarness<String, byte[], byte[]>(
                new KeyedProcessOperator<>(new TokenSums()), TokenSums::keyOf, Types.STRING);
        harness.setup();
        if (from != null) {
            harness.initializeState(from);
        }
        harness.open();
        return harness;
    }

    private void send(byte[]... answers) throws Exception {
        for (byte[] answer : answers) {
            flink.processElement(new StreamRecord<>(answer));
        }
    }

    private void open(int window, int controllers, boolean masked) throws Exception {
        Opening set = Feed.opening(window, Feed.tokens(window, controllers, masked), 0);
        List<byte[]> shares = new ArrayList<>();
        TokenSums.deal(set.bytes(), new ListCollector<>(shares));
        send(shares.toArray(byte[][]::new));
    }

    private List<Sum> parts() throws Exception {
        List<Sum> parts = new ArrayList<>();
        for (Object record : flink.getOutput()) {
            parts.add(Sum.read((byte[]) ((StreamRecord<?>) record).getValue()));
        }
        return parts;
    }

    private static long[] rows(long first) {
        return new long[] {first, 2 * first, 3 * first};
    }

    @Test
    void openingsAreSubtractedOnceTheSetIsComplete() throws Exception {
        send(Feed.token(0, 0, rows(10)), Feed.token(0, 1, rows(20)), Feed.share(0, 0, rows(1)));
        open(0, 2, true);
        assertEquals(1, parts().size(), "one opening is missing");
        send(Feed.share(0, 1, rows(2)));
        assertEquals(2, parts().size(), "each is in a share of its own");
        long[] sum = new long[3];
        long[] digest = new long[SetDigest.WORDS];
        for (Sum part : parts()) {
            assertEquals(Side.TOKENS, part.side());
            assertEquals(2, part.wanted());
            assertEquals(1, part.count());
            TickSum.add(sum, part.rows());
            TickSum.add(digest, part.digest());
        }
        assertArrayEquals(rows(27), sum);
        assertArrayEquals(Feed.tokens(0, 2, true).digest(), digest);
    }

    @Test
    void anAnswerCountsOnceAndOnlyForItsWindow() throws Exception {
        open(0, 1, false);
        send(Feed.token(1, 0, rows(9)));
        assertEquals(0, parts().size());
        send(Feed.token(0, 0, rows(5)), Feed.token(0, 0, rows(5)), Feed.token(0, 0, rows(6)));
        assertEquals(1, parts().size());
        assertArrayEquals(rows(5), parts().get(0).rows());
        open(0, 1, false);
        assertEquals(1, parts().size());
        open(1, 1, false);
        assertArrayEquals(rows(9), parts().get(1).rows());
    }

    /** A long window's set is older than those of thousands of short ones, and its shares arrive later. */
    @Test
    void aSetIsKeptWhileOthersOpen() throws Exception {
        send(Feed.token(0, 0, rows(10)));
        for (int window = 1; window <= 4200; window++) {
            open(window, 1, false);
        }
        open(0, 1, true);
        send(Feed.share(0, 0, rows(1)));
        assertEquals(1, parts().size());
        assertArrayEquals(rows(9), parts().get(0).rows());
    }

    @Test
    void controllersOutsideTheSetAreNotInTheSum() throws Exception {
        // Positions 0 and 256 are in one share.
        send(Feed.token(0, 256, rows(100)), Feed.token(0, 0, rows(5)));
        open(0, 1, false);
        assertEquals(1, parts().size());
        assertArrayEquals(rows(5), parts().get(0).rows());
    }

    @Test
    void anAnswerWithTheWrongLengthIsIgnored() throws Exception {
        send(Feed.token(0, 0, new long[] {1, 2}));
        open(0, 1, false);
        assertEquals(0, parts().size());
        send(Feed.token(0, 0, rows(5)));
        assertArrayEquals(rows(5), parts().get(0).rows());
    }

    @Test
    void aRestoreGivesTheSameSumOnce() throws Exception {
        send(Feed.token(0, 0, rows(5)));
        OperatorSubtaskState checkpoint = flink.snapshot(1, 1);
        open(0, 1, false);
        byte[] before = parts().get(0).bytes();
        flink.close();
        flink = harness(checkpoint);
        open(0, 1, false);
        assertEquals(1, parts().size());
        assertArrayEquals(before, parts().get(0).bytes());
        OperatorSubtaskState after = flink.snapshot(2, 2);
        flink.close();
        flink = harness(after);
        send(Feed.token(0, 0, rows(5)));
        open(0, 1, false);
        assertEquals(0, parts().size());
    }
}

// Checks records of the topics of instructions and tokens. All others are dead letters.
package alpheus.flink;

import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Token;
import alpheus.layout.Layout;
import alpheus.stream.EventTime;
import java.io.IOException;
import java.util.regex.Pattern;

/**
 * Checks messages before they reach state. The writers of these topics are trusted to decide, but may make
 * mistakes. An instruction that the job cannot carry out must not stop it for all plans.
 */
final class Instructions {
    private static final Pattern PLAN = Pattern.compile("[0-9a-f]{64}");
    private static final Pattern STREAM = Pattern.compile("[0-9a-f]{32}");

    /** The maximum size of a summary's borders in bytes. The whole record stays below Kafka's default limit. */
    private static final long MAX_SUMMARY = 1_000_000;

    private final Shape shape;

    Instructions(Shape shape) {
        this.shape = shape;
    }

    /** Whether the bytes are an instruction or a join that the job can carry out. */
    boolean isInstruction(byte[] bytes) {
        try {
            return switch (Messages.kind(bytes)) {
                case Join.KIND -> isPossible(Join.read(bytes));
                case DeviceIs.KIND -> shape.hasFramePerTick() && isPossible(DeviceIs.read(bytes));
                case PlanStart.KIND -> isPossible(PlanStart.read(bytes).plan());
                case PlanEnd.KIND -> PLAN.matcher(PlanEnd.read(bytes).plan()).matches();
                case Opening.KIND -> isPossible(Opening.read(bytes));
                default -> false;
            };
        } catch (IOException cut) {
            return false;
        }
    }

    /** Whether the bytes are a token or an opening share. */
    static boolean isToken(byte[] bytes) {
        try {
            if (Messages.kind(bytes) != Token.KIND) {
                return false;
            }
            Token token = Token.read(bytes);
            return PLAN.matcher(token.plan()).matches() && token.controller() >= 0 && isWithin(token.start());
        } catch (IOException cut) {
            return false;
        }
    }

    private boolean isPossible(Join join) {
        return STREAM.matcher(join.stream()).matches() && join.position() >= 0 && isPossible(join.plan());
    }

    private static boolean isPossible(DeviceIs device) {
        return STREAM.matcher(device.stream()).matches() && device.device().hasKey();
    }

    private boolean isPossible(PlanView plan) {
        return isWithin(plan.window()) && plan.window() > 0 && isWithin(plan.grace()) && isWithin(plan.from())
                && plan.window() % shape.tick() == 0 && plan.from() % plan.window() == 0 && plan.gaps() >= 0
                && fitsASummary(plan.window()) && PLAN.matcher(plan.plan()).matches() && hasPossibleRows(plan);
    }

    /** Beyond these limits a sum of times would overflow, and a timer would never fire. */
    private static boolean isWithin(long micros) {
        return micros >= 0 && micros < EventTime.LIMIT;
    }

    /**
     * A summary lists each border. One that is too large for the broker would stop the job repeatedly, for
     * all plans.
     */
    private boolean fitsASummary(long window) {
        if (shape.hasFramePerTick()) {
            return window / shape.ticks().anchor() * ClaimBytes.LENGTH <= MAX_SUMMARY;
        }
        long borders = window / shape.tick();
        long sessions = StreamState.MAX_SESSIONS + 2 + window / EventTime.DAY;
        return borders * TickMark.LENGTH + sessions * Judgement.Segment.HEAD <= MAX_SUMMARY;
    }

    private boolean hasPossibleRows(PlanView plan) {
        for (int[] row : plan.rows()) {
            for (int word : row) {
                if (word >= shape.words()) {
                    return false;
                }
            }
        }
        return plan.rows().length > 0;
    }

    private static boolean isPossible(Opening set) {
        return PLAN.matcher(set.plan()).matches() && isWithin(set.start())
                && set.digest().length == SetDigest.WORDS && set.tokens().digest().length == SetDigest.WORDS
                && set.tokens().rows() >= 0 && set.tokens().rows() <= Layout.MAX_WORDS;
    }
}

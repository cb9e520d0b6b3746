// The transactions in which borders go between the application's own.
package alpheus.kafka;

import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * The transactions in which borders go between the application's own. Kafka's client refuses every other step
 * until a commit or an abort that was cut short is asked for again: so what is owed is settled before all else.
 * Whoever uses it holds a lock.
 */
final class OwnTransactions {
    /** What was asked for, and cut short. */
    private enum Owed { NOTHING, COMMIT, ABORT }

    private final Producer<byte[], byte[]> kafka;
    private Owed owed = Owed.NOTHING;

    OwnTransactions(Producer<byte[], byte[]> kafka) {
        this.kafka = kafka;
    }

    /** Sends in a transaction. */
    void run(Runnable send) {
        settle();
        kafka.beginTransaction();
        try {
            send.run();
        } catch (KafkaException failure) {
            abort(failure);
            throw failure;
        }
        owed = Owed.COMMIT;
        settle();
    }

    /** Ends the transaction that was cut short, if there is one: none begins before. */
    void settle() {
        if (owed == Owed.ABORT) {
            kafka.abortTransaction();
        } else if (owed == Owed.COMMIT) {
            commit();
        }
        owed = Owed.NOTHING;
    }

    private void commit() {
        try {
            kafka.commitTransaction();
        } catch (TimeoutException | InterruptException cutShort) {
            throw cutShort;
        } catch (KafkaException failure) {
            abort(failure);
            throw failure;
        }
    }

    /** Without this no later transaction could begin. A producer that is fenced off cannot abort either. */
    private void abort(KafkaException failure) {
        owed = Owed.NOTHING;
        try {
            kafka.abortTransaction();
        } catch (TimeoutException | InterruptException cutShort) {
            owed = Owed.ABORT;
            failure.addSuppressed(cutShort);
        } catch (KafkaException | IllegalStateException fatal) {
            failure.addSuppressed(fatal);
        }
    }
}

// The transactions in which borders go between the application's own.
package alpheus.kafka;

import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * The transactions for borders between the application's own. After an interrupted commit or abort Kafka's
 * client rejects every other step until it is repeated. So a pending step is repeated before anything else.
 * The caller must hold a lock.
 */
final class OwnTransactions {
    /** The step that was interrupted. */
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

    /** Ends the interrupted transaction, if there is one. No other can begin before. */
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

    /** Without this no later transaction could begin. A fenced producer cannot abort either. */
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

// Why the broker rejected a frame, and how to fix it.
package alpheus.kafka;

import java.util.List;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TransactionAbortedException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Why the broker rejected a frame, and how to fix it. The application gets Kafka's own exceptions, as from
 * any producer. This is for borders, which no application waits for. It names topics and settings, never a
 * value, a key or a password.
 */
final class BrokerRefusal {
    private record Rule(Class<? extends Exception> failure, String words) {}

    private static final List<Rule> RULES = List.of(
            new Rule(AuthenticationException.class,
                    "the broker does not accept this client's identity; check security.protocol, sasl.* and ssl.*"),
            new Rule(TopicAuthorizationException.class,
                    "this client may not write to the topic; allow its principal WRITE and DESCRIBE on it"),
            new Rule(TransactionalIdAuthorizationException.class,
                    "this client may not use its transactional.id; allow its principal WRITE and DESCRIBE on it"),
            new Rule(ClusterAuthorizationException.class,
                    "this client may not send idempotently; allow its principal IDEMPOTENT_WRITE on the cluster"),
            new Rule(ProducerFencedException.class,
                    "another producer has this transactional.id; use each device's file in one producer at a time"),
            new Rule(InvalidProducerEpochException.class,
                    "another producer has this transactional.id, or a transaction outlasted transaction.timeout.ms"),
            new Rule(UnknownTopicOrPartitionException.class, "the topic does not exist; create it"),
            new Rule(RecordTooLargeException.class,
                    "a frame is larger than Kafka accepts; raise max.request.size here and max.message.bytes of the topic"),
            new Rule(InvalidTimestampException.class,
                    "a frame's time is too far from the broker's clock; check this machine's clock, and the topic's "
                            + "message.timestamp.before.max.ms and message.timestamp.after.max.ms"),
            new Rule(TransactionAbortedException.class, "its transaction was aborted"),
            new Rule(TimeoutException.class,
                    "the broker did not answer in time; check bootstrap.servers and that the topic exists"));

    private BrokerRefusal() {}

    /** One sentence with the name of the exception, or of its cause if that is more specific. */
    static String words(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            for (Rule rule : RULES) {
                if (rule.failure().isInstance(cause)) {
                    return rule.words() + topics(cause) + " (" + cause.getClass().getSimpleName() + ")";
                }
            }
        }
        // One of ours: it describes the problem, without a value.
        return failure instanceof SerializationException
                ? failure.getMessage() : "the broker rejected a frame (" + failure.getClass().getName() + ")";
    }

    private static String topics(Throwable cause) {
        return cause instanceof TopicAuthorizationException refused ? ": " + refused.unauthorizedTopics() : "";
    }
}

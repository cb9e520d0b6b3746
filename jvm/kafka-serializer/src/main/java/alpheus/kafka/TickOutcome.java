// What becomes of a tick's frame, and so of its events.
package alpheus.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * What becomes of a tick's frame, and so of its events: they are in the topic when it is. Events are added
 * under the keeper's lock, before the frame is made.
 */
final class TickOutcome {
    private final CompletableFuture<RecordMetadata> done = new CompletableFuture<>();
    private final List<Callback> callbacks = new ArrayList<>();
    private long events;

    /** Adds an event. */
    Future<RecordMetadata> add(Callback callback) {
        events++;
        if (callback != null) {
            callbacks.add(callback);
        }
        // A copy, since an application may cancel its own.
        return done.copy();
    }

    long events() {
        return events;
    }

    /** Completes all its events. Returns whether this is the first time. */
    boolean complete(RecordMetadata metadata, Exception failure) {
        boolean isFirst = failure == null ? done.complete(metadata) : done.completeExceptionally(failure);
        if (isFirst) {
            callbacks.forEach(callback -> callback.onCompletion(metadata, failure));
        }
        return isFirst;
    }
}

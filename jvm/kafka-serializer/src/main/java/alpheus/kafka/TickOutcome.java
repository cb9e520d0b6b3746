// What becomes of a tick's frame, and so of its events.
package alpheus.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * What becomes of a tick's frame, and so of its events: they are in the topic when it is. Events are added
 * under the keeper's lock, before the frame is made.
 */
final class TickOutcome {
    private final CompletableFuture<RecordMetadata> done = new CompletableFuture<>();
    private final List<Callback> callbacks = new ArrayList<>();
    private final AtomicBoolean settled = new AtomicBoolean();
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

    /** Whether this is the first to settle what becomes of it. */
    boolean isFirst() {
        return settled.compareAndSet(false, true);
    }

    /** Completes all its events. */
    void complete(RecordMetadata metadata, Exception failure) {
        if (failure == null) {
            done.complete(metadata);
        } else {
            done.completeExceptionally(failure);
        }
        callbacks.forEach(callback -> callback.onCompletion(metadata, failure));
    }
}

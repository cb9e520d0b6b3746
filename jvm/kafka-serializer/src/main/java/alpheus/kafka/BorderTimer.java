// Sends borders on time while no events come.
package alpheus.kafka;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends borders that are due, on its own thread. */
final class BorderTimer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BorderTimer.class);
    private static final long INTERVAL_MILLIS = 20;

    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(run -> {
        Thread daemon = new Thread(run, "alpheus-borders");
        daemon.setDaemon(true);
        return daemon;
    });

    BorderTimer(Runnable look) {
        thread.scheduleWithFixedDelay(() -> guarded(look), INTERVAL_MILLIS, INTERVAL_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** A task that throws is never run again, so this one must not throw. */
    private static void guarded(Runnable look) {
        try {
            look.run();
        } catch (RuntimeException failure) {
            LOG.warn("cannot send borders, will retry: {}", failure.getClass().getName());
        }
    }

    @Override
    public void close() {
        thread.shutdownNow();
    }
}

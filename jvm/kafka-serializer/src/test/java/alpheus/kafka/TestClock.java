// A clock that stands still unless somebody waits for it.
package alpheus.kafka;

/** A clock that stands still unless somebody waits for it, or it is set. */
final class TestClock implements MicroClock {
    private long now;

    TestClock(long now) {
        this.now = now;
    }

    @Override
    public synchronized long now() {
        return now;
    }

    @Override
    public synchronized void waitUntil(long micros) {
        now = Math.max(now, micros);
    }

    synchronized void set(long micros) {
        now = micros;
    }
}

// Time, as an argument.
package alpheus.kafka;

import java.time.Instant;

/** A clock in microseconds, with waiting. */
interface MicroClock {
    /** The machine's clock. */
    MicroClock SYSTEM = new MicroClock() {
        @Override
        public long now() {
            Instant now = Instant.now();
            return 1_000_000L * now.getEpochSecond() + now.getNano() / 1_000;
        }

        @Override
        public void waitUntil(long micros) throws InterruptedException {
            long left = micros - now();
            if (left > 0) {
                Thread.sleep(left / 1_000, (int) (left % 1_000) * 1_000);
            }
        }
    };

    /** Microseconds since 1970. */
    long now();

    /** Waits until this time, or a little later. */
    void waitUntil(long micros) throws InterruptedException;
}

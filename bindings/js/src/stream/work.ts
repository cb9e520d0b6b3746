/** Work of a session, one piece after the other. */
import { ProducerError } from './error.js';

/**
 * A queue of asynchronous work. The session's state moves when work is put in, so that no time is used twice; the
 * cryptography follows in order. If one piece fails, nothing after it is done: what it should have sent is missing.
 */
export class WorkQueue {
  private last: Promise<void> = Promise.resolve();
  private broken: { readonly reason: unknown } | undefined;

  /** Adds a piece. The promise is of this piece. */
  put(piece: () => Promise<void>): Promise<void> {
    const done = this.last.then(async () => {
      if (this.broken !== undefined) throw this.broken.reason;
      try {
        await piece();
      } catch (reason) {
        this.broken = { reason };
        throw reason;
      }
    });
    this.last = done.catch(() => undefined);
    return done;
  }

  /** Fails all that has not begun. */
  stop(): void {
    this.broken ??= { reason: new ProducerError('Ended') };
  }
}

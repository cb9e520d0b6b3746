/** One session per stream: Web Locks where there are any, over all tabs and workers of an origin; else within this program. */

/** A lock that is held. */
export interface Held {
  /** Gives it back. */
  release(): void;
  /** Resolves if somebody takes it away. */
  readonly stolen: Promise<void>;
}

const held = new Set<string>();

/** Takes a lock, or waits for it; undefined if it is held elsewhere and nobody waits. */
export async function take(name: string, wait: boolean): Promise<Held | undefined> {
  const locks = (globalThis.navigator as Navigator | undefined)?.locks;
  return locks === undefined ? takeHere(name) : takeByPlatform(locks, name, wait);
}

/** Nobody waits within one program: it can wait for its own `close`. */
function takeHere(name: string): Held | undefined {
  if (held.has(name)) return undefined;
  held.add(name);
  return { release: () => held.delete(name), stolen: new Promise(() => undefined) };
}

function takeByPlatform(locks: LockManager, name: string, wait: boolean): Promise<Held | undefined> {
  return new Promise((resolve, reject) => {
    let stolen: () => void = () => undefined;
    const taken = (lock: Lock | null): Promise<void> | undefined => {
      if (lock === null) {
        resolve(undefined);
        return undefined;
      }
      return new Promise((release) => {
        resolve({ release, stolen: new Promise((taken) => (stolen = taken)) });
      });
    };
    // It rejects if the lock is stolen, or if the page may have none.
    locks.request(name, { ifAvailable: !wait }, taken).catch((refused: unknown) => {
      stolen();
      reject(refused);
    });
  });
}

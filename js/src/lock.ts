// Web Locks that tell other tabs which openings of a database are alive.

const DIGITS = 16;

/** A name for one opening: 16 hexadecimal digits. */
export function newContext(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(DIGITS / 2));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function lockName(database: string, context: string): string {
  return `timepail:${database}:${context}`;
}

/** `navigator.locks`, where it exists: not in Node 20, not in pages served without TLS. */
function lockManager(): LockManager | undefined {
  return (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
}

/**
 * Holds the lock of an opening until the function that it resolves to is called. Resolves to `undefined` where there is no lock to hold.
 *
 * Nothing depends on the lock but whether others think that folding the opening's journal is worth it, so a browser that refuses it is no failure.
 */
export function holdContext(database: string, context: string): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    const unheld = (): void => resolve(undefined);
    const manager = lockManager();
    if (!manager) return unheld();
    const hold = (): Promise<void> => new Promise((release) => resolve(release));
    try {
      manager.request(lockName(database, context), hold).catch(unheld);
    } catch {
      unheld();
    }
  });
}

/** Resolves when nobody holds the lock of an opening any more: browsers release the locks of workers that end. Rejects or stays pending where nobody can say. */
export async function contextEnded(database: string, context: string): Promise<void> {
  await (lockManager()?.request(lockName(database, context), () => {}) ?? new Promise(() => {}));
}

/** The openings of `database` that are alive; `undefined` where nobody can say. */
export async function aliveContexts(database: string): Promise<string[] | undefined> {
  const prefix = lockName(database, "");
  const state = await lockManager()?.query();
  return state?.held
    ?.map((lock) => lock.name ?? "")
    .filter((name) => name.startsWith(prefix) && name.length === prefix.length + DIGITS)
    .map((name) => name.slice(prefix.length));
}

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

/** `navigator.locks`, if it exists. Node 20 and pages served without TLS do not have it. */
function lockManager(): LockManager | undefined {
  return (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
}

/**
 * Holds the lock of an opening until you call the function that it resolves to. Resolves to `undefined` if no lock is held.
 *
 * The lock only tells others whether it is worth folding the opening's journal. So it is not a failure if a browser refuses the lock.
 */
export function holdContext(database: string, context: string): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    // Asynchronous, because `request` may throw, or not exist.
    const hold = async (): Promise<void> => lockManager()!.request(lockName(database, context), () => new Promise<void>((release) => resolve(release)));
    hold().catch(() => resolve(undefined));
  });
}

/** Resolves when the lock of an opening is free: browsers release the locks of workers that end. Rejects or stays pending if the runtime cannot tell. */
export async function contextEnded(database: string, context: string): Promise<void> {
  await (lockManager()?.request(lockName(database, context), () => {}) ?? new Promise(() => {}));
}

/** The openings of `database` that are alive; `undefined` if the runtime cannot tell. */
export async function aliveContexts(database: string): Promise<string[] | undefined> {
  const prefix = lockName(database, "");
  const state = await lockManager()?.query();
  return state?.held?.flatMap(({ name = "" }) => (name.startsWith(prefix) && name.length === prefix.length + DIGITS ? name.slice(prefix.length) : []));
}

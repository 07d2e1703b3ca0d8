// A storage in memory, with failures on demand.

import type { HostStorage, StorageChange, StorageEntry, StoragePage, StorageRange } from "../storage.js";
import { compareBytes } from "../bytes.js";

/** The methods of a storage that can be made to fail. */
export type StorageMethod = "getMany" | "scan" | "commit";

/** A fault: before anything is done, or after a commit has taken place. */
interface Fault {
  error: Error;
  isLate: boolean;
}

/**
 * A storage in memory for tests of your own code. It counts calls, fails on demand, and can be copied at any moment to simulate a crash.
 *
 * @example
 * ```ts
 * const storage = new MemoryStorage();
 * const db = await open("plant", { storage });
 * storage.fail("commit", { times: 2, error: new DOMException("The disk is full", "QuotaExceededError") });
 * await assert.rejects(db.collection("weather").insertOne({ at: new Date() }), { codeName: "OutOfDiskSpace" });
 * const afterCrash = await open("plant", { storage: storage.copy() });
 * ```
 */
export class MemoryStorage implements HostStorage {
  /** How often each method was called. */
  readonly calls: Record<StorageMethod, number> = { getMany: 0, scan: 0, commit: 0 };
  /** Ascending by key. */
  #entries: [key: Uint8Array, value: Uint8Array][] = [];
  readonly #faults: Record<StorageMethod, Fault[]> = { getMany: [], scan: [], commit: [] };

  /** Number of entries. */
  get size(): number {
    return this.#entries.length;
  }

  /**
   * Makes the next `times` calls of `method` (default 1) fail with `error` before they do anything. timepail repeats a failed commit once, so `times` must be at
   * least 2 to make a command fail.
   */
  fail(method: StorageMethod, { times = 1, error = new Error("Injected: nothing was done") }: { times?: number; error?: Error } = {}): void {
    for (let i = 0; i < times; i++) this.#faults[method].push({ error, isLate: false });
  }

  /** Makes the next `times` commits (default 1) succeed and then throw `error`, as if their answers were lost. */
  loseAnswers({ times = 1, error = new Error("Injected: the answer was lost") }: { times?: number; error?: Error } = {}): void {
    for (let i = 0; i < times; i++) this.#faults.commit.push({ error, isLate: true });
  }

  /** Returns another storage with the same entries and without faults: what a crash at this moment would leave. */
  copy(): MemoryStorage {
    const copy = new MemoryStorage();
    copy.#entries = this.#entries.slice();
    return copy;
  }

  getMany(keys: Uint8Array[]): (Uint8Array | undefined)[] {
    this.#enter("getMany");
    return keys.map((key) => {
      const { at, isThere } = this.#find(key);
      return isThere ? this.#entries[at]![1] : undefined;
    });
  }

  scan(ranges: StorageRange[], { entriesMax, keysOnly }: StoragePage): StorageEntry[] {
    this.#enter("scan");
    const found: StorageEntry[] = [];
    for (const [start, end] of ranges) {
      for (let { at } = this.#find(start); found.length < entriesMax; at++) {
        const entry = this.#entries[at];
        if (!entry || compareBytes(entry[0], end) >= 0) break;
        found.push(keysOnly ? [entry[0]] : entry);
      }
    }
    return found;
  }

  commit(changes: StorageChange[]): boolean {
    const fault = this.#enter("commit");
    for (const [kind, key] of changes) {
      if ((kind === "insert" && this.#find(key).isThere) || (kind === "require" && !this.#find(key).isThere)) return false;
    }
    for (const change of changes) this.#apply(change);
    if (fault) throw fault.error;
    return true;
  }

  #apply(change: StorageChange): void {
    const { at, isThere } = this.#find(change[1]);
    switch (change[0]) {
      case "put":
      case "insert":
        this.#entries.splice(at, isThere ? 1 : 0, [change[1], change[2]]);
        break;
      case "delete":
        if (isThere) this.#entries.splice(at, 1);
        break;
      case "deleteRange":
        this.#entries.splice(at, Math.max(this.#find(change[2]).at - at, 0));
    }
  }

  /** Counts a call, and throws if it must fail now. Returns the fault to raise after the commit. */
  #enter(method: StorageMethod): Fault | undefined {
    this.calls[method]++;
    const fault = this.#faults[method].shift();
    if (fault && !fault.isLate) throw fault.error;
    return fault;
  }

  /** The position of `key`, or the position at which to insert it. */
  #find(key: Uint8Array): { at: number; isThere: boolean } {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = compareBytes(this.#entries[middle]![0], key);
      if (order === 0) return { at: middle, isThere: true };
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return { at: low, isThere: false };
  }
}

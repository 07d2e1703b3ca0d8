// What a storage is: a sorted map of bytes with atomic batches. Whoever has one can keep a database in it.

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/** Keys from `start` up to, but not including, `end`. Keys are compared byte by byte. */
export type StorageRange = readonly [start: Uint8Array, end: Uint8Array];

/** A key and its value. The value may be left out where only keys were asked for. */
export type StorageEntry = readonly [key: Uint8Array, value?: Uint8Array];

/** How much of a scan to answer. */
export interface StoragePage {
  /** At most this many entries, over all ranges. */
  readonly entriesMax: number;
  /** Values will not be looked at. */
  readonly keysOnly: boolean;
}

/**
 * One step of a commit.
 *
 * - `put` sets a key, whether it exists or not
 * - `insert` sets a key that must not exist before the commit
 * - `delete` removes a key; an absent one is fine
 * - `deleteRange` removes every key of a range
 * - `require` is a test only: the key must exist before the commit
 */
export type StorageChange =
  | readonly [kind: "put", key: Uint8Array, value: Uint8Array]
  | readonly [kind: "insert", key: Uint8Array, value: Uint8Array]
  | readonly [kind: "delete", key: Uint8Array]
  | readonly [kind: "require", key: Uint8Array]
  | readonly [kind: "deleteRange", start: Uint8Array, end: Uint8Array];

/**
 * Where a database keeps its entries: `open(name, { storage })`.
 *
 * `timepail/sqlite` and `timepail/deno-kv` have two; `timepail/testing` has one in memory, and the tests that every storage must pass. One storage holds one
 * database, which several processes may have open if the storage allows it. timepail never closes a storage: who has opened it does, after the database.
 *
 * Arrays of bytes that are handed over belong to the storage; those that it answers are copied before anything else happens.
 */
export interface HostStorage {
  /** The values of `keys` in the order asked, `undefined` or `null` where there is none. All as of one moment. */
  getMany(keys: Uint8Array[]): Awaitable<readonly (Uint8Array | undefined | null)[]>;
  /**
   * The entries of `ranges`, range after range in the order given, keys ascending inside each; at most `page.entriesMax` in all. Fewer means that there are no
   * more. All as of one moment.
   */
  scan(ranges: StorageRange[], page: StoragePage): Awaitable<readonly StorageEntry[]>;
  /**
   * Makes all `changes` in the order given, or none of them, and answers when they are durable.
   *
   * First every `insert` and `require` is judged by what was there before the commit. Where one does not hold, nothing is written and the answer is `false`;
   * else it is `true`. For everything else that goes wrong, throw: then it is not known whether the commit took place, and timepail asks for the same commit
   * once more. An error whose name is `"QuotaExceededError"` becomes `OutOfDiskSpace`, every other one `OperationFailed`; both carry what it said.
   */
  commit(changes: StorageChange[]): Awaitable<boolean>;
}

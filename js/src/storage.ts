// The interface of a storage: a sorted map of bytes with atomic batches. You can keep a database in any implementation.

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/** The keys from `start` up to, but not including, `end`. Keys are compared byte by byte. */
export type StorageRange = readonly [start: Uint8Array, end: Uint8Array];

/** A key and its value. The value may be missing if only keys were asked for. */
export type StorageEntry = readonly [key: Uint8Array, value?: Uint8Array];

/** How much of a scan to return. */
export interface StoragePage {
  /** Maximum number of entries, over all ranges together. */
  readonly entriesMax: number;
  /** True if the caller does not need values. */
  readonly keysOnly: boolean;
}

/**
 * One step of a commit.
 *
 * - `put` sets a key, whether it exists or not.
 * - `insert` sets a key that must not exist before the commit.
 * - `delete` removes a key, and does nothing if it does not exist.
 * - `deleteRange` removes every key of a range.
 * - `require` only tests: the key must exist before the commit.
 */
export type StorageChange =
  | readonly [kind: "put", key: Uint8Array, value: Uint8Array]
  | readonly [kind: "insert", key: Uint8Array, value: Uint8Array]
  | readonly [kind: "delete", key: Uint8Array]
  | readonly [kind: "require", key: Uint8Array]
  | readonly [kind: "deleteRange", start: Uint8Array, end: Uint8Array];

/**
 * A place for the entries of a database: `open(name, { storage })`.
 *
 * `timepail/sqlite` and `timepail/deno-kv` provide two. `timepail/testing` has one in memory, and the tests that every storage must pass. One storage holds one
 * database; several processes can have it open if the storage allows it. timepail never closes a storage: close it yourself, after the database.
 *
 * The byte arrays in arguments belong to the storage. timepail copies the byte arrays in results at once.
 */
export interface HostStorage {
  /** Returns the values of `keys` in the same order, `undefined` or `null` for a missing key. All are from one moment. */
  getMany(keys: Uint8Array[]): Awaitable<readonly (Uint8Array | undefined | null)[]>;
  /**
   * Returns the entries of `ranges`: range after range in the order given, and by ascending key inside each. Returns at most `page.entriesMax` entries; fewer means
   * that there are no more. All are from one moment.
   */
  scan(ranges: StorageRange[], page: StoragePage): Awaitable<readonly StorageEntry[]>;
  /**
   * Makes all `changes` in the order given, or none of them, and returns when they are durable.
   *
   * First check every `insert` and `require` against the state before the commit. If one of them does not hold, write nothing and return `false`. Otherwise return
   * `true`. Throw for every other failure: the outcome is then unknown, and timepail repeats the same commit once. An error with the name `"QuotaExceededError"`
   * reaches the caller as `OutOfDiskSpace`, every other one as `OperationFailed`, both with the message of the error.
   */
  commit(changes: StorageChange[]): Awaitable<boolean>;
}

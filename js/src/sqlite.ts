// A storage in SQLite: `node:sqlite` in Node and Deno, `bun:sqlite`, and the storage of a Durable Object.

import type { HostStorage, StorageChange, StorageEntry, StoragePage, StorageRange } from "./storage.js";

export type * from "./storage.js";

/** A prepared statement of `node:sqlite` or `bun:sqlite`. */
export interface SqliteStatement {
  all(...parameters: any[]): unknown[];
  run(...parameters: any[]): unknown;
}

/** An open database: `DatabaseSync` of `node:sqlite`, `Database` of `bun:sqlite`, or any object with these methods. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

/** `ctx.storage` of a Durable Object whose class uses SQLite. */
export interface DurableObjectStorage {
  sql: { exec(sql: string, ...parameters: any[]): { toArray(): any[] } };
  transactionSync<T>(work: () => T): T;
  sync?(): Promise<void>;
}

/** Options of {@link sqliteStorage}. */
export interface SqliteOptions {
  /** Name of the table. Use different names for several databases in one file. A second table, `<table>_parts`, holds what is too large for a row. Default `"timepail"`. */
  table?: string;
  /**
   * When a write resolves.
   *
   * - `"relaxed"` (default): when SQLite has committed it. The write survives a crash of the process; a power failure may lose the last moments.
   * - `"strict"`: when it is on disk. Responses of a Durable Object wait for the disk in any case.
   */
  durability?: "relaxed" | "strict";
  /** How long a write waits for another process that writes, in milliseconds. It blocks the thread. Has no effect in Durable Objects, where nobody else writes. Default 5000. */
  busyTimeoutMS?: number;
}

/** Rows of Durable Objects have at most 2 MB, including the key. */
const PART_BYTES = 1_000_000;

/** The operations of both kinds of handles. */
interface Connection {
  all(sql: string, ...parameters: unknown[]): any[];
  run(sql: string, ...parameters: unknown[]): void;
  /** Runs `work` in one transaction. An exception rolls it back. */
  transaction<T>(kind: "read" | "write", work: () => T): T;
  durable(): Promise<void> | undefined;
}

/** Thrown to roll back a transaction. */
const REFUSED = Symbol("refused");

/**
 * Creates a storage in a table of a SQLite database. Use the handle for timepail only, because transactions of other code on it would interfere. Several processes
 * can have the file open, each with its own handle.
 *
 * @example
 * ```ts
 * import { DatabaseSync } from "node:sqlite";           // Node 24, Deno; in Bun: import { Database } from "bun:sqlite"
 * import { sqliteStorage } from "timepail/sqlite";
 *
 * const db = await open("plant", { storage: sqliteStorage(new DatabaseSync("plant.db")) });
 * ```
 * @example
 * ```ts
 * const db = await open("plant", { storage: sqliteStorage(ctx.storage) });   // in a Durable Object
 * ```
 */
export function sqliteStorage(handle: SqliteDatabase | DurableObjectStorage, options: SqliteOptions = {}): HostStorage {
  if (typeof handle !== "object" || handle === null) {
    throw new TypeError(`sqliteStorage takes an open database, such as new DatabaseSync("plant.db") of node:sqlite, and not ${JSON.stringify(handle)}; openFile of timepail/file takes a path`);
  }
  const table = options.table ?? "timepail";
  if (!/^[a-z_]\w*$/i.test(table)) throw new TypeError(`${JSON.stringify(table)} is not a valid table name: it must start with a letter or an underscore, followed by letters, digits and underscores`);
  const connection = "sql" in handle ? durableObject(handle, options) : database(handle, options);
  connection.run(`CREATE TABLE IF NOT EXISTS ${table} (key BLOB PRIMARY KEY NOT NULL, value BLOB, parts INTEGER NOT NULL) WITHOUT ROWID`);
  connection.run(`CREATE TABLE IF NOT EXISTS ${table}_parts (key BLOB NOT NULL, part INTEGER NOT NULL, value BLOB, PRIMARY KEY (key, part)) WITHOUT ROWID`);
  return new SqliteStorage(connection, table);
}

class SqliteStorage implements HostStorage {
  readonly #connection: Connection;
  readonly #sql: ReturnType<typeof statements>;

  constructor(connection: Connection, table: string) {
    this.#connection = connection;
    this.#sql = statements(table);
  }

  getMany(keys: Uint8Array[]): (Uint8Array | undefined)[] {
    return this.#connection.transaction("read", () => keys.map((key) => this.#value(key, this.#connection.all(this.#sql.get, key)[0])));
  }

  scan(ranges: StorageRange[], { entriesMax, keysOnly }: StoragePage): StorageEntry[] {
    return this.#connection.transaction("read", () => {
      const found: StorageEntry[] = [];
      for (const [start, end] of ranges) {
        if (found.length === entriesMax) break;
        const rows = this.#connection.all(keysOnly ? this.#sql.scanKeys : this.#sql.scan, start, end, entriesMax - found.length);
        for (const row of rows) {
          const key = bytes(row.key);
          found.push(keysOnly ? [key] : [key, this.#value(key, row)!]);
        }
      }
      return found;
    });
  }

  async commit(changes: StorageChange[]): Promise<boolean> {
    try {
      this.#connection.transaction("write", () => this.#write(changes));
    } catch (error) {
      if (error === REFUSED) return false;
      throw isFull(error) ? noRoom(error) : error;
    }
    await this.#connection.durable();
    return true;
  }

  #write(changes: StorageChange[]): void {
    const { all, run } = this.#connection;
    for (const [kind, key] of changes) {
      if (kind !== "insert" && kind !== "require") continue;
      if ((all(this.#sql.exists, key).length > 0) !== (kind === "require")) throw REFUSED;
    }
    let hasParts = all(this.#sql.hasParts).length > 0;
    for (const change of changes) {
      const key = change[1];
      if (change[0] === "require") continue;
      if (change[0] === "deleteRange") {
        run(this.#sql.deleteRange, key, change[2]);
        if (hasParts) run(this.#sql.deletePartsOfRange, key, change[2]);
        continue;
      }
      if (hasParts) run(this.#sql.deleteParts, key);
      if (change[0] === "delete") {
        run(this.#sql.delete, key);
        continue;
      }
      const parts = split(change[2]);
      run(this.#sql.put, key, parts[0], parts.length - 1);
      parts.slice(1).forEach((part, at) => run(this.#sql.putPart, key, at, part));
      hasParts ||= parts.length > 1;
    }
  }

  /** The value of a row, joined with the rows of its further parts. */
  #value(key: Uint8Array, row: { value: unknown; parts: number } | undefined): Uint8Array | undefined {
    if (!row) return undefined;
    const first = bytes(row.value);
    if (!row.parts) return first;
    const parts = [first, ...this.#connection.all(this.#sql.parts, key).map((part) => bytes(part.value))];
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}

function statements(table: string) {
  return {
    get: `SELECT value, parts FROM ${table} WHERE key = ?`,
    exists: `SELECT 1 FROM ${table} WHERE key = ?`,
    scan: `SELECT key, value, parts FROM ${table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?`,
    scanKeys: `SELECT key FROM ${table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?`,
    put: `INSERT OR REPLACE INTO ${table} (key, value, parts) VALUES (?, ?, ?)`,
    delete: `DELETE FROM ${table} WHERE key = ?`,
    deleteRange: `DELETE FROM ${table} WHERE key >= ? AND key < ?`,
    hasParts: `SELECT 1 FROM ${table}_parts LIMIT 1`,
    parts: `SELECT value FROM ${table}_parts WHERE key = ? ORDER BY part`,
    putPart: `INSERT INTO ${table}_parts (key, part, value) VALUES (?, ?, ?)`,
    deleteParts: `DELETE FROM ${table}_parts WHERE key = ?`,
    deletePartsOfRange: `DELETE FROM ${table}_parts WHERE key >= ? AND key < ?`,
  };
}

/** True if the disk or the database is full. Drivers have the code in different places, or only in the message. */
function isFull(error: unknown): error is Error {
  return error instanceof Error && /SQLITE_FULL|database or disk is full/.test(`${(error as { code?: unknown }).code} ${error.message}`);
}

/** The same error with the name that a storage must give it. */
function noRoom(cause: Error): Error {
  return Object.assign(new Error(cause.message, { cause }), { name: "QuotaExceededError" });
}

/** Splits a value into parts that fit a row; at least one part. */
function split(value: Uint8Array): Uint8Array[] {
  const parts = [value.subarray(0, PART_BYTES)];
  for (let at = PART_BYTES; at < value.length; at += PART_BYTES) parts.push(value.subarray(at, at + PART_BYTES));
  return parts;
}

/** The bytes of a blob. Some handles accept or return nothing for an empty blob. */
function bytes(blob: unknown): Uint8Array {
  return blob instanceof Uint8Array ? blob : new Uint8Array((blob ?? 0) as ArrayBuffer);
}

/** `node:sqlite`, `bun:sqlite` and the like. Statements are prepared once. */
function database(handle: SqliteDatabase, { durability = "relaxed", busyTimeoutMS = 5000 }: SqliteOptions): Connection {
  handle.exec(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMS)}`);
  try {
    handle.exec("PRAGMA journal_mode = WAL");
  } catch {
    // Another process is using the file. Every mode is correct; WAL only lets readers and a writer work concurrently.
  }
  handle.exec(`PRAGMA synchronous = ${durability === "strict" ? "FULL" : "NORMAL"}`);
  const prepared = new Map<string, SqliteStatement>();
  const statement = (sql: string): SqliteStatement => {
    let known = prepared.get(sql);
    if (!known) prepared.set(sql, (known = handle.prepare(sql)));
    return known;
  };
  return {
    all: (sql, ...parameters) => statement(sql).all(...parameters),
    run: (sql, ...parameters) => void statement(sql).run(...parameters),
    transaction(kind, work) {
      // A write takes the write lock at once. A later upgrade would fail, instead of waiting, if another writer was faster.
      statement(kind === "write" ? "BEGIN IMMEDIATE" : "BEGIN").run();
      try {
        const result = work();
        statement("COMMIT").run();
        return result;
      } catch (error) {
        try {
          statement("ROLLBACK").run();
        } catch {
          // SQLite has already ended the transaction.
        }
        throw error;
      }
    },
    durable: () => undefined,
  };
}

/** A Durable Object. It keeps prepared statements itself, and takes whole buffers, not views of them. */
function durableObject(storage: DurableObjectStorage, { durability = "relaxed" }: SqliteOptions): Connection {
  const own = (value: unknown): unknown =>
    value instanceof Uint8Array && value.byteLength !== value.buffer.byteLength ? value.slice().buffer : value instanceof Uint8Array ? value.buffer : value;
  const all: Connection["all"] = (sql, ...parameters) => storage.sql.exec(sql, ...parameters.map(own)).toArray();
  return {
    all,
    run: all,
    transaction: (kind, work) => (kind === "read" ? work() : storage.transactionSync(work)),
    durable: () => (durability === "strict" ? storage.sync?.() : undefined),
  };
}

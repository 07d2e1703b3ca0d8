// A database in a file: Node, Bun and Deno, each with the SQLite that it has.

// Import by name and not by path, so that the rest of the program uses the same engine.
import { open } from "timepail";
import type { Database } from "./database.js";
import { databaseName, openSqlite } from "./sqlite-file.js";
import { sqliteStorage, type SqliteOptions } from "./sqlite.js";
import type { OpenOptions } from "./types.js";

/** Options of {@link openFile}: those of `open` but for `storage`, and those of `sqliteStorage`. */
export interface OpenFileOptions extends Omit<OpenOptions, "storage" | "durability">, SqliteOptions {}

/**
 * Opens the database in a SQLite file, and creates it if it does not exist. `db.close()` closes the file, too. Several processes can have it open.
 *
 * - Node 22.13 and later, and Deno: with `node:sqlite`
 * - Bun: with `bun:sqlite`
 * - Node 20: with the package `better-sqlite3`, if you have installed it
 *
 * @param path - of the file; the name of the database is that of the file, without its extension
 * @throws Error if there is no SQLite
 * @example
 * ```ts
 * import { openFile } from "timepail/file";
 *
 * await using db = await openFile("plant.db");
 * ```
 */
export async function openFile(path: string, options: OpenFileOptions = {}): Promise<Database> {
  if (typeof path !== "string" || path === "") throw new TypeError("openFile takes the path of a file");
  const { table, durability, busyTimeoutMS, ...others } = options;
  const given: SqliteOptions = {};
  if (table !== undefined) given.table = table;
  if (durability !== undefined) given.durability = durability;
  if (busyTimeoutMS !== undefined) given.busyTimeoutMS = busyTimeoutMS;
  const handle = await openSqlite(path);
  let db: Database;
  try {
    db = await open(databaseName(path), { ...others, storage: sqliteStorage(handle, given) });
  } catch (error) {
    handle.close();
    throw error;
  }
  const close = db.close.bind(db);
  let closing: Promise<void> | undefined;
  db.close = () => (closing ??= close().finally(() => handle.close()));
  return db;
}

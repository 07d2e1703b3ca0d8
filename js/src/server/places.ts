// Where the databases of a server are kept: a SQLite file with many of them, or storages that a program passes.

import { databaseName, openSqlite, type SqliteHandle } from "../sqlite-file.js";
import { sqliteStorage } from "../sqlite.js";
import type { HostStorage, StorageChange, StorageEntry, StoragePage, StorageRange } from "../storage.js";
import { credentialsOf, type Credentials, type Users } from "./users.js";

/** A place for databases. */
export interface Places {
  /** The names of known databases; some may be empty. */
  names(): string[];
  /** The storage of a database. If it does not exist yet, its first commit creates it. */
  storage(name: string): HostStorage;
  users?: UserTable;
  close(): void;
}

/** Users that are kept in a file. */
export interface UserTable extends Users {
  set(name: string, password: string): void;
  remove(name: string): boolean;
}

/** Storages that a program passes: one for one database, or one for each that it knows. */
export function givenPlaces(given: HostStorage | ((name: string) => HostStorage | undefined), name: string): Places {
  if (typeof given !== "function") return { names: () => [name], storage: (wanted) => (wanted === name ? given : nowhere(wanted)), close() {} };
  const known = new Set<string>();
  return {
    names: () => [...known],
    storage(wanted) {
      const storage = given(wanted);
      if (storage) known.add(wanted);
      return storage ?? nowhere(wanted);
    },
    close() {},
  };
}

/** A database that stays empty. Clients also ask for databases that are not listed, and find nothing there. */
function nowhere(name: string): HostStorage {
  return new LazyStorage(
    () => undefined,
    () => {
      throw new Error(`This server has no storage for the database ${JSON.stringify(name)}`);
    },
  );
}

/**
 * A SQLite file. The database with the name of the file is the one that `openFile` opens. Each other database has its own table, according to a list of databases.
 */
export class FilePlaces implements Places {
  readonly #handle: SqliteHandle;
  readonly #own: string;
  readonly #durability: "relaxed" | "strict";
  readonly users: UserTable;

  private constructor(handle: SqliteHandle, own: string, durability: "relaxed" | "strict") {
    this.#handle = handle;
    this.#own = own;
    this.#durability = durability;
    this.users = new SqliteUsers(handle);
  }

  static async open(path: string, durability: "relaxed" | "strict"): Promise<FilePlaces> {
    const handle = await openSqlite(path);
    try {
      handle.exec("PRAGMA busy_timeout = 5000");
      handle.exec("CREATE TABLE IF NOT EXISTS timepail_databases (name TEXT PRIMARY KEY NOT NULL, place INTEGER UNIQUE NOT NULL) WITHOUT ROWID");
      handle.exec(
        "CREATE TABLE IF NOT EXISTS timepail_users (name TEXT PRIMARY KEY NOT NULL, salt BLOB NOT NULL, iterations INTEGER NOT NULL, stored_key BLOB NOT NULL, server_key BLOB NOT NULL) WITHOUT ROWID",
      );
      return new FilePlaces(handle, databaseName(path), durability);
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  names(): string[] {
    const rows = this.#handle.prepare("SELECT name FROM timepail_databases ORDER BY name").all() as { name: string }[];
    return [this.#own, ...rows.map((row) => row.name)];
  }

  storage(name: string): HostStorage {
    if (name === this.#own) return this.#table("timepail");
    return new LazyStorage(
      () => {
        const place = this.#place(name);
        return place === undefined ? undefined : this.#table(`timepail_${place}`);
      },
      () => {
        // Use one statement, because another process may do the same at this moment.
        this.#handle.prepare("INSERT OR IGNORE INTO timepail_databases (name, place) SELECT ?, coalesce(max(place), 0) + 1 FROM timepail_databases").run(name);
        return this.#table(`timepail_${this.#place(name)}`);
      },
    );
  }

  close(): void {
    this.#handle.close();
  }

  #table(table: string): HostStorage {
    return sqliteStorage(this.#handle, { table, durability: this.#durability });
  }

  #place(name: string): number | undefined {
    return (this.#handle.prepare("SELECT place FROM timepail_databases WHERE name = ?").all(name) as { place: number }[])[0]?.place;
  }
}

/** Users in a table of the file. It stores only what SCRAM-SHA-256 needs to check a password. */
class SqliteUsers implements UserTable {
  readonly #handle: SqliteHandle;

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  find(name: string): Credentials | undefined {
    const [row] = this.#handle.prepare("SELECT salt, iterations, stored_key, server_key FROM timepail_users WHERE name = ?").all(name) as any[];
    return row && { salt: row.salt, iterations: row.iterations, storedKey: row.stored_key, serverKey: row.server_key };
  }

  names(): string[] {
    return (this.#handle.prepare("SELECT name FROM timepail_users ORDER BY name").all() as { name: string }[]).map((row) => row.name);
  }

  set(name: string, password: string): void {
    if (typeof name !== "string" || name === "") throw new TypeError("The name of a user must be a non-empty string");
    const { salt, iterations, storedKey, serverKey } = credentialsOf(password);
    this.#handle.prepare("INSERT OR REPLACE INTO timepail_users (name, salt, iterations, stored_key, server_key) VALUES (?, ?, ?, ?, ?)").run(name, salt, iterations, storedKey, serverKey);
  }

  remove(name: string): boolean {
    const existed = this.find(name) !== undefined;
    this.#handle.prepare("DELETE FROM timepail_users WHERE name = ?").run(name);
    return existed;
  }
}

/** A storage that may not exist yet: it is empty until its first commit. */
class LazyStorage implements HostStorage {
  readonly #find: () => HostStorage | undefined;
  readonly #make: () => HostStorage;
  #storage: HostStorage | undefined;

  constructor(find: () => HostStorage | undefined, make: () => HostStorage) {
    this.#find = find;
    this.#make = make;
  }

  /** Look again each time, because another process may have created it meanwhile. */
  get #existing(): HostStorage | undefined {
    return (this.#storage ??= this.#find());
  }

  getMany(keys: Uint8Array[]) {
    return this.#existing?.getMany(keys) ?? keys.map(() => undefined);
  }

  scan(ranges: StorageRange[], page: StoragePage) {
    return this.#existing?.scan(ranges, page) ?? ([] as StorageEntry[]);
  }

  commit(changes: StorageChange[]) {
    return (this.#existing ?? (this.#storage = this.#make())).commit(changes);
  }
}

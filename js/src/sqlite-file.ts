// A SQLite file by its path: Node, Bun and Deno, each with the SQLite that it has.

import type { SqliteDatabase } from "./sqlite.js";

/** The interface that all SQLite handles share. */
export interface SqliteHandle extends SqliteDatabase {
  close(): void;
}

/** `data/plant.db` is the database `plant`. */
export function databaseName(path: string): string {
  const file = path.split(/[\\/]/).at(-1)!;
  return file.replace(/(?<=.)\.[^.]*$/, "") || path;
}

/** Opens a SQLite file with what the runtime has. The message of an error begins with the path. */
export async function openSqlite(path: string): Promise<SqliteHandle> {
  const openHandle = await sqliteOfRuntime();
  try {
    return openHandle(path);
  } catch (error) {
    if (error instanceof Error) error.message = `${path}: ${error.message}`;
    throw error;
  }
}

async function sqliteOfRuntime(): Promise<(path: string) => SqliteHandle> {
  // Hide the names from bundlers, because each runtime has only one of these modules.
  const load = async (...parts: string[]): Promise<any> => import(/* @vite-ignore */ /* webpackIgnore: true */ parts.join(""));
  if ("Bun" in globalThis) {
    const { Database } = await load("bun:", "sqlite");
    return (path) => new Database(path, { create: true });
  }
  try {
    const { DatabaseSync } = await load("node:", "sqlite");
    return (path) => new DatabaseSync(path);
  } catch (error) {
    if (!/ERR_UNKNOWN_BUILTIN_MODULE|ERR_MODULE_NOT_FOUND/.test(String((error as { code?: unknown }).code))) throw error;
  }
  try {
    const { default: Database } = await load("better-", "sqlite3");
    return (path) => new Database(path);
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new Error("A database in a file needs SQLite: Node 22.13 or later, Bun and Deno have it; in an earlier Node, run npm install better-sqlite3", { cause });
  }
}

// The databases of a file: the one with the name of the file, and those that clients of `timepail serve` have created.

import { existsSync } from "node:fs";
// Import by name and not by path, so that the rest of the program uses the same engine.
import { open } from "timepail";
import { openFile } from "timepail/file";
import type { Database } from "../database.js";
import { FilePlaces } from "../server/places.js";
import { existing } from "./command.js";
import { databaseName, openSqlite } from "../sqlite-file.js";

type Durability = "relaxed" | "strict";

/** Opens a database of a file, and creates it if it does not exist. */
export async function openDatabase(path: string, name = databaseName(path), durability: Durability = "relaxed"): Promise<Database> {
  if (name === databaseName(path)) return openFile(path, { durability });
  const places = await FilePlaces.open(path, durability);
  return within(places, name);
}

/** Opens a database that exists. @throws Error that names the others, if there is none of that name */
export async function openExisting(path: string, name = databaseName(path), durability: Durability = "relaxed"): Promise<Database> {
  existing(path);
  if (name === databaseName(path)) return openFile(path, { durability });
  const places = await FilePlaces.open(path, durability);
  const names = places.names();
  if (names.includes(name)) return within(places, name);
  places.close();
  throw new Error(`There is no database ${name} in ${path}; it has ${names.join(", ")}`);
}

/** The databases of a file, except the one with the name of the file. */
export async function otherDatabases(path: string): Promise<string[]> {
  const handle = await openSqlite(existing(path));
  try {
    // A file that was never opened by a server has no list of databases.
    const hasList = handle.prepare("SELECT 1 FROM sqlite_master WHERE name = 'timepail_databases'").all().length > 0;
    return hasList ? (handle.prepare("SELECT name FROM timepail_databases ORDER BY name").all() as { name: string }[]).map(({ name }) => name) : [];
  } finally {
    handle.close();
  }
}

/** A database that closes its file as well. */
async function within(places: FilePlaces, name: string): Promise<Database> {
  const db = await open(name, { storage: places.storage(name) });
  const close = db.close.bind(db);
  let closing: Promise<void> | undefined;
  db.close = () => (closing ??= close().finally(() => places.close()));
  return db;
}

/** The same for reading: a file that does not exist is an empty database, and is not created. */
export async function lookInto(path: string, name = databaseName(path)): Promise<Database> {
  return existsSync(path) ? openDatabase(path, name) : open(name, { storage: "memory" });
}

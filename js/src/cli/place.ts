// The databases of a file: the one that is named like the file, and those that clients of `timepail serve` have made beside it.

import { existsSync } from "node:fs";
// By name and not by path: the engine is the one that the rest of the program uses.
import { open } from "timepail";
import { openFile } from "timepail/file";
import type { Database } from "../database.js";
import { FilePlaces } from "../server/places.js";
import { databaseName } from "../sqlite-file.js";

/** Opens a database of a file, and creates it if it does not exist. */
export async function openDatabase(path: string, name = databaseName(path)): Promise<Database> {
  if (name === databaseName(path)) return openFile(path);
  const places = await FilePlaces.open(path, "relaxed");
  const db = await open(name, { storage: places.storage(name) });
  const close = db.close.bind(db);
  let closing: Promise<void> | undefined;
  db.close = () => (closing ??= close().finally(() => places.close()));
  return db;
}

/** The same to look into: a file that does not exist is an empty database, and is not created. */
export async function lookInto(path: string, name = databaseName(path)): Promise<Database> {
  return existsSync(path) ? openDatabase(path, name) : open(name, { storage: "memory" });
}

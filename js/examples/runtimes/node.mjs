// Node 24 (node:sqlite exists since 22.13): node node.mjs [file]

import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { open } from "timepail";
import { sqliteStorage } from "timepail/sqlite";
import { addReading } from "./readings.mjs";

const file = new DatabaseSync(process.argv[2] ?? "plant.db");
const db = await open("plant", { storage: sqliteStorage(file) });
await addReading(db);
await db.close();
file.close();

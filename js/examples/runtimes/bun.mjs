// Bun: bun bun.mjs [file]

import { Database } from "bun:sqlite";
import { open } from "timepail";
import { sqliteStorage } from "timepail/sqlite";
import { addReading } from "./readings.mjs";

const file = new Database(process.argv[2] ?? "plant.db", { create: true });
const db = await open("plant", { storage: sqliteStorage(file) });
await addReading(db);
await db.close();
file.close();

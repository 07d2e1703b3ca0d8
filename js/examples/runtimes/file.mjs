// Node 22.13 and later, Bun, Deno: node file.mjs [file]

import process from "node:process";
import { openFile } from "timepail/file";
import { addReading } from "./readings.mjs";

const db = await openFile(process.argv[2] ?? "plant.db");
await addReading(db);
await db.close();

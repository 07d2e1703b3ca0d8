// Deno: deno run --unstable-kv --allow-read --allow-write deno.mjs [file]

import { open } from "timepail";
import { denoKvStorage } from "timepail/deno-kv";
import { addReading } from "./readings.mjs";

const kv = await Deno.openKv(Deno.args[0] ?? "plant.db");
const db = await open("plant", { storage: denoKvStorage(kv) });
await addReading(db);
await db.close();
kv.close();

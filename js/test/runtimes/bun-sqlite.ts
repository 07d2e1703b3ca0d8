// bun:sqlite: a file a store.

// @ts-expect-error known to Bun only
import { Database } from "bun:sqlite";
import process from "node:process";
import { sqliteStorage } from "timepail/sqlite";
import { main } from "./run.ts";

await main(async (name) => sqliteStorage(new Database(`${process.env["STATE"]}/${name}.db`, { create: true })));

// bun:sqlite: one file per store.

// @ts-expect-error only Bun has this module
import { Database } from "bun:sqlite";
import process from "node:process";
import { sqliteStorage } from "timepail/sqlite";
import { full } from "./full.ts";
import { main } from "./run.ts";

const file = (name: string) => new Database(`${process.env["STATE"]}/${name}.db`, { create: true });

await main(async (name) => sqliteStorage(file(name)), full(file));

// node:sqlite in Node and in Deno: one file per store.

import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import type { HostStorage } from "timepail";
import { sqliteStorage } from "timepail/sqlite";
import type { Step } from "./end-to-end.ts";
import { failure, same } from "./expect.ts";
import { full } from "./full.ts";
import { main } from "./run.ts";

const file = (name: string): DatabaseSync => new DatabaseSync(`${process.env["STATE"]}/${name}.db`);
const key = Uint8Array.of(1);
const count = async (storage: HostStorage): Promise<number> => (await storage.scan([[new Uint8Array(), Uint8Array.of(255)]], { entriesMax: 10, keysOnly: true })).length;

const own: Step[] = [
  {
    name: "no row has more than a Durable Object takes, and none is left of what was removed",
    async run() {
      const db = file("rows");
      const storage = sqliteStorage(db, { table: "t" });
      same(await storage.commit([["put", key, new Uint8Array(5_500_000)]]), true);
      const lengths = (): unknown => ["t", "t_parts"].map((table) => db.prepare(`SELECT count(*) AS n, max(length(value)) AS most FROM ${table}`).get());
      same(lengths(), [{ n: 1, most: 1_000_000 }, { n: 5, most: 1_000_000 }]);
      same(await storage.commit([["put", key, new Uint8Array(1_000_001)]]), true);
      same(lengths(), [{ n: 1, most: 1_000_000 }, { n: 1, most: 1 }]);
      same(await storage.commit([["deleteRange", key, Uint8Array.of(2)]]), true);
      same(lengths(), [{ n: 0, most: null }, { n: 0, most: null }]);
    },
  },
  {
    name: "tables keep databases apart, and have a name that is one",
    async run() {
      const db = file("tables");
      const [one, other] = [sqliteStorage(db, { table: "one" }), sqliteStorage(db, { table: "other" })];
      same(await one.commit([["put", key, key]]), true);
      same([await count(one), await count(other)], [1, 0]);
      for (const table of ["", "a b", "a;DROP TABLE one", "1a"]) same((await failure((async () => sqliteStorage(db, { table }))())).name, "TypeError");
    },
  },
  {
    name: "what SQLite refuses undoes the whole commit and says why",
    async run() {
      const db = file("refused");
      const storage = sqliteStorage(db);
      const large = { length: 2 ** 32 } as unknown as Uint8Array;
      await failure((async () => storage.commit([["put", key, key], ["put", Uint8Array.of(2), large]]))());
      same(await count(storage), 0);
      db.exec("BEGIN");
      same(/transaction/.test((await failure((async () => storage.commit([["put", key, key]]))())).message), true);
      db.exec("ROLLBACK");
      same(await storage.commit([["put", key, key]]), true);
    },
  },
  {
    name: "a writer waits for another one, but not for ever",
    async run() {
      const [one, other] = [file("busy"), file("busy")];
      sqliteStorage(one);
      const storage = sqliteStorage(other, { busyTimeoutMS: 1 });
      one.exec("BEGIN IMMEDIATE");
      same(/locked/.test((await failure((async () => storage.commit([["put", key, key]]))())).message), true);
      same(await count(storage), 0);
      one.exec("COMMIT");
      same(await storage.commit([["put", key, key]]), true);
    },
  },
  {
    name: "durability is the choice of whoever opens it",
    async run() {
      const mode = (options?: { durability: "strict" | "relaxed" }): unknown => {
        const db = file("durability");
        sqliteStorage(db, options);
        return [db.prepare("PRAGMA synchronous").get(), db.prepare("PRAGMA journal_mode").get()];
      };
      same(mode({ durability: "strict" }), [{ synchronous: 2 }, { journal_mode: "wal" }]);
      same(mode(), [{ synchronous: 1 }, { journal_mode: "wal" }]);
    },
  },
];

await main(async (name) => sqliteStorage(file(name)), [...own, ...full(file)]);

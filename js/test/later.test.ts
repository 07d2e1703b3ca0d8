// A cursor that needs the second half of the module only after its first rows. A separate file, because the first database decides
// what the process loads.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Decimal128 } from "bson";
import { open } from "../src/entry/node.js";

const bytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`../dist/${name}`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;

test("a cursor that meets its first decimal in a later batch continues without losing rows", async () => {
  let loads = 0;
  const options = {
    storage: "memory" as const,
    wasm: bytes("timepail.wasm"),
    get wasmMore() {
      loads += 1;
      return bytes("timepail-more.wasm");
    },
  };
  const db = await open("later", options);
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertMany(Array.from({ length: 20 }, (_, i) => ({ at: new Date(i * 1000), v: i < 15 ? i : Decimal128.fromString(`${i}.5`) })));
  const sorted = () => c.find({}).sort({ at: 1 });
  assert.equal((await sorted().batchSize(4).toArray()).length, 20);
  assert.equal((await sorted().limit(9).project({ w: { $add: ["$v", 1] } }).toArray()).length, 9);
  assert.equal(loads, 0);
  const next = await sorted().project({ _id: 0, w: { $add: ["$v", 1] } }).batchSize(4).toArray();
  assert.deepEqual(next.map(({ w }) => Number(w)), Array.from({ length: 20 }, (_, i) => (i < 15 ? i + 1 : i + 1.5)));
  assert.equal(loads, 1);
  await db.close();
});

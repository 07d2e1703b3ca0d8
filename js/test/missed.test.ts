// A find that would be faster with the second half of the module. A separate file, because the first database decides what the process loads.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { LoadError, open } from "../src/entry/node.js";

const bytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`../dist/${name}`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;

test("a find that looks at many buckets in vain loads the second half in the background, once, and waits for nothing", async () => {
  let loads = 0;
  const failed = Promise.reject(new LoadError("not today"));
  failed.catch(() => {});
  const options = {
    storage: "memory" as const,
    wasm: bytes("timepail.wasm"),
    get wasmMore() {
      loads += 1;
      return loads === 1 ? failed : bytes("timepail-more.wasm");
    },
  };
  const db = await open("missed", options);
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  const fill = async (from: number, to: number) => {
    await c.insertMany(Array.from({ length: to - from }, (_, i) => ({ at: new Date(0), m: { id: from + i }, v: i })));
    await db.flush();
  };
  await fill(0, 50);
  const found = () => c.find({ "m.id": 7 }).toArray();
  for (let i = 0; i < 3; i++) assert.equal((await found()).length, 1);
  await fill(50, 200);
  assert.equal((await c.find({ "m.id": { $gte: 0 } }).toArray()).length, 200);
  assert.equal((await c.find({ v: 7 }).toArray()).length, 2);
  // Here the second half would not help: all buckets belong to matching series, and values or a limit exclude them.
  const one = await db.createCollection("one", { timeseries: { timeField: "at", metaField: "m" } });
  await one.insertMany(Array.from({ length: 150 }, (_, i) => ({ at: new Date(i * 7_200_000), m: { id: 7 }, v: i })));
  await db.flush();
  assert.equal((await one.find({ "m.id": 7, v: { $gt: 140 } }).toArray()).length, 9);
  assert.equal((await one.find({ "m.id": 7 }).limit(5).toArray()).length, 5);
  assert.equal((await one.find({ "m.id": 7, at: { $lt: new Date(1) } }).toArray()).length, 1);
  assert.equal(loads, 0);
  // The second half cannot be loaded, but only speed depends on it.
  for (let i = 0; i < 3; i++) assert.equal((await found()).length, 1);
  assert.equal(loads, 1);
  assert.equal((await c.aggregate([{ $match: { "m.id": 7 } }]).toArray()).length, 1);
  assert.equal(loads, 2);
  assert.equal((await found()).length, 1);
  await db.close();
});

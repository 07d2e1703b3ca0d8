// Finds that decode many buckets again and again. A separate file, because the first database decides what the process loads.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { open } from "../src/entry/node.js";

const bytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`../dist/${name}`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;

test("the second find that decodes many buckets loads the second half in the background, which keeps decoded columns", async () => {
  let loads = 0;
  const options = {
    storage: "memory" as const,
    wasm: bytes("timepail.wasm"),
    get wasmMore() {
      loads += 1;
      return bytes("timepail-more.wasm");
    },
  };
  const db = await open("decoded", options);
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  await c.insertMany(Array.from({ length: 3000 }, (_, i) => ({ at: new Date(i * 180_000), m: 1, v: i % 700, s: `text ${i}` })));
  await db.flush();
  const few = () => c.find({ at: { $lt: new Date(40 * 3_600_000) } }).toArray();
  const all = () => c.find({ v: { $gte: 0 } }).toArray();
  for (let i = 0; i < 5; i++) assert.equal((await few()).length, 800);
  const first = await all();
  assert.equal(first.length, 3000);
  assert.equal(loads, 0);
  for (let i = 0; i < 4; i++) {
    assert.deepEqual(await all(), first);
    assert.equal(loads, 1);
  }
  await db.close();
});

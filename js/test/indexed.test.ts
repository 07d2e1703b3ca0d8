// Collections with user indexes, and the first half of the module alone. The built package, which has both halves, creates them: its module is
// a different one from that of the source here.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { open as openWhole } from "timepail";
import { LoadError, open } from "../src/entry/node.js";
import { MemoryStorage } from "timepail/testing";

const halved = (storage: MemoryStorage) => ({
  storage,
  wasm: readFile(new URL("../dist/timepail.wasm", import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>,
  get wasmMore(): Promise<Uint8Array<ArrayBuffer>> {
    return Promise.reject(new LoadError("not today"));
  },
});
const timeseries = { timeField: "at", metaField: "m" };
/** A time that has not expired. */
const START = Date.now() - 200 * 60_000;
const row = (i: number) => ({ at: new Date(START + i * 60_000), m: { id: i % 5, tag: `t${i % 3}` }, v: i });

test("common commands on a collection with indexes need only the first half", async () => {
  const storage = new MemoryStorage();
  const whole = await openWhole("plant", { storage });
  const made = await whole.createCollection("c", { timeseries });
  await made.createIndexes([
    { key: { v: 1 } },
    { key: { "m.id": 1, at: -1 } },
    { key: { "m.$**": 1 } },
    { key: { "m.tag": "hashed" }, partialFilterExpression: { "m.id": { $gt: 1 } } },
    { key: { at: 1 }, name: "old", expireAfterSeconds: 1e9, partialFilterExpression: { "m.id": 4 } },
  ]);
  await made.insertMany(Array.from({ length: 100 }, (_, i) => row(i)));
  await whole.flush();
  await made.insertMany(Array.from({ length: 20 }, (_, i) => row(100 + i)));

  const db = await open("plant", halved(storage));
  const c = db.collection("c");
  const values = async (filter: object, hint: string) => (await c.find(filter).hint(hint).sort({ v: 1 }).toArray()).map(({ v }) => v);
  assert.deepEqual(await values({ v: { $gte: 98, $lt: 103 } }, "v_1"), [98, 99, 100, 101, 102]);
  assert.deepEqual(await values({ "m.id": 3, at: { $gte: new Date(START + 100 * 60_000) } }, "m.id_1_at_-1"), [103, 108, 113, 118]);
  assert.deepEqual(await values({ "m.id": { $in: [1] }, v: { $gt: 110 } }, "m.$**_1"), [111, 116]);
  assert.equal(await c.countDocuments({ "m.tag": "t1", "m.id": { $gt: 1 } }), 24);
  await c.insertMany(Array.from({ length: 10 }, (_, i) => row(120 + i)));
  await assert.rejects(c.insertOne({ ...row(1), v: [1] } as never), { code: 5930501 });
  await db.flush();
  await db.command({ foldJournals: 1, alive: [] });
  // Deletes, and expireAfterSeconds of an index, need the second half.
  await assert.rejects(c.deleteMany({ v: { $lt: 90 } }), /not today/);
  await assert.rejects(db.command({ expire: 1 }), /not today/);
  assert.deepEqual(await values({ v: { $gte: 88, $lt: 92 } }, "v_1"), [88, 89, 90, 91]);
  assert.deepEqual(await values({ v: { $gte: 127 } }, "v_1"), [127, 128, 129]);
  await assert.rejects(c.createIndex({ w: 1 }), /not today/);
  await db.close();

  assert.deepEqual([(await whole.command({ validate: "c", full: true }))["valid"], await made.countDocuments()], [true, 130]);
  await whole.close();
});

test("a collection with a geospatial index waits for the second half", async () => {
  const storage = new MemoryStorage();
  const whole = await openWhole("plant", { storage });
  await (await whole.createCollection("c", { timeseries })).createIndex({ place: "2dsphere" });
  await whole.close();
  const db = await open("plant", halved(storage));
  await assert.rejects(db.collection("c").find().toArray(), /not today/);
  await assert.rejects(db.collection("c").insertOne(row(1)), /not today/);
  await db.close();
});

test("a collection with a collation waits for the second half", async () => {
  const storage = new MemoryStorage();
  const whole = await openWhole("plant", { storage });
  await whole.createCollection("c", { timeseries, collation: { locale: "en", strength: 2 } });
  await whole.createCollection("plain", { timeseries });
  await whole.close();
  const db = await open("plant", halved(storage));
  await assert.rejects(db.collection("c").find().toArray(), /not today/);
  await assert.rejects(db.collection("c").insertOne(row(1)), /not today/);
  await db.collection("plain").insertOne(row(1));
  await db.close();
});

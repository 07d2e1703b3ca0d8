// Times of the wrong kind, and options that are changed or kept on opening, with the package and its engine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "timepail";
import { MemoryStorage } from "timepail/testing";

const timeseries = { timeField: "at", metaField: "station" } as const;

test("seconds are refused as milliseconds, and converted if the unit is named", async () => {
  const db = await open("times", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries });
  const seconds = [1_700_000_000, 1_700_000_060];
  await assert.rejects(c.insertColumns({ at: seconds, n: [1, 2] }), { code: 2, message: /'at' at row 0 is 1700000000.*timeUnit: "s"/ });
  assert.equal(await c.countDocuments(), 0);
  await c.insertColumns({ at: Float64Array.from(seconds), n: [1, 2] }, { timeUnit: "s" });
  await c.insertColumns({ at: BigInt64Array.of(1_700_000_120_000_000_000n), n: [3] }, { timeUnit: "ns" });
  await c.insertColumns({ at: [0], n: [0] }, { timeUnit: "ms" });
  assert.deepEqual((await c.find().sort({ at: 1 }).toArray()).map(({ at }) => at.getTime()), [0, 1_700_000_000_000, 1_700_000_060_000, 1_700_000_120_000]);
  await db.close();
});

test("with strict, comparing the time with a number or a string is an error", async () => {
  const storage = new MemoryStorage();
  const db = await open("times", { storage, strict: true });
  const c = await db.createCollection("c", { timeseries });
  await c.insertOne({ at: new Date(5), n: 1 });
  for (const call of [() => c.find({ at: { $gte: 5 } }).toArray(), () => c.deleteMany({ at: "1970" }), () => c.countDocuments({ at: 5 }), () => c.aggregate([{ $match: { at: 5 } }]).next()]) {
    await assert.rejects(call, { code: 2, message: /^'at' is compared with the (double|string) .*: pass a Date$/ });
  }
  assert.equal(await c.countDocuments({ at: { $gte: new Date(5) } }), 1);
  await db.close();
  const usual = await open("times", { storage });
  assert.deepEqual(await usual.collection("c").find({ at: { $gte: 5 } }).toArray(), []);
  await usual.close();
});

test("create of an existing collection reports differences, or changes it", async () => {
  const db = await open("times", { storage: "memory" });
  await db.createCollection("c", { timeseries, expireAfterSeconds: 60 });
  const options = { timeseries, expireAfterSeconds: 90, maxBytes: 5000 };
  await assert.rejects(db.createCollection("c", options), { codeName: "NamespaceExists", message: /expireAfterSeconds is 60, not 90.*\{ collMod: "c", expireAfterSeconds: 90, maxBytes: 5000 \}/ });
  await db.createCollection("c", { ...options, ifExists: "modify" });
  await db.createCollection("c", options);
  await assert.rejects(db.createCollection("c", { timeseries: { timeField: "time" }, ifExists: "modify" }), /timeField is "at", not "time".*cannot be changed/);
  await db.close();
});

test("with manual retention, expired measurements stay until expire runs", async () => {
  const storage = new MemoryStorage();
  const old = await open("times", { storage, retention: "manual" });
  const c = await old.createCollection("c", { timeseries, expireAfterSeconds: 60 });
  await c.insertMany([{ at: new Date(0), n: 1 }]);
  await old.close();
  const db = await open("times", { storage, retention: "manual" });
  await db.command({ maintain: 1 });
  assert.equal(await db.collection("c").countDocuments(), 1);
  await db.command({ expire: 1 });
  assert.equal(await db.collection("c").countDocuments(), 0);
  await db.close();
  await assert.rejects(open("times", { storage, retention: "never" as "manual" }), /retention must be 'automatic' or 'manual'/);
});

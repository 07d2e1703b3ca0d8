// The two halves of the module: what the first can do alone, and commands whose half cannot be loaded.
// One module instance per test, because the first database decides where a process loads it from.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Decimal128 } from "bson";
import { LoadError, open } from "../src/entry/node.js";

const bytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`../dist/${name}`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;

test("common commands need one half, others wait for the second and continue once it is available", async () => {
  let wasmMore: Promise<Uint8Array<ArrayBuffer>> = Promise.reject(new LoadError("not today"));
  wasmMore.catch(() => {});
  const options = {
    storage: "memory" as const,
    wasm: bytes("timepail.wasm"),
    get wasmMore() {
      return wasmMore;
    },
  };
  const db = await open("halves", options);
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" }, expireAfterSeconds: 1e9 });
  await c.insertMany(Array.from({ length: 50 }, (_, i) => ({ at: new Date(Date.now() - i * 1000), m: { id: i % 5 }, v: i, list: [i, "x", null], more: { deep: [{ v: i }] } })));
  await c.insertColumns({ at: [Date.now()], v: [1] }, { meta: { id: 9 } });
  await db.flush();
  const sorts = [{ at: 1 }, { at: -1 }, { m: 1 }, { v: -1 }] as const;
  for (const sort of sorts) assert.equal((await c.find({ v: { $gte: 0 }, $expr: { $gt: ["$v", -1] } }).sort(sort).batchSize(7).toArray()).length, 51);
  assert.equal((await c.find({ list: "x", "more.deep.v": { $in: [1, 2, 3] } }).project({ twice: { $add: ["$v", "$v"] } }).toArray()).length, 3);
  assert.deepEqual([await c.countDocuments({ "m.id": 1 }), await c.estimatedDocumentCount()], [10, 51]);
  assert.equal((await c.find().limit(5).toColumns())["v"]!.length, 5);
  assert.equal((await db.listCollections().toArray()).length, 2);
  await assert.rejects(db.command({ expire: 1 }), /not today/);
  await db.command({ ping: 1 });
  await assert.rejects(c.insertOne({ v: 1 }), { code: 2 });
  const buckets = await db.collection("system.buckets.c").find({}, { promoteValues: false }).toArray();
  await db.createCollection("copy", { timeseries: { timeField: "at", metaField: "m" } });
  const copy = () => db.command({ insert: "system.buckets.copy", documents: buckets, unsafeBucketWrites: true });
  await assert.rejects(copy(), /not today/);

  await assert.rejects(c.aggregate([]).toArray(), /not today/);
  await assert.rejects(c.createIndex({ v: 1 }), /not today/);
  await assert.rejects(c.distinct("m.id"), /not today/);
  const near = { place: { $geoWithin: { $centerSphere: [[10, 50], 0.001] } } };
  const valid = { $jsonSchema: { properties: { v: { bsonType: "double", maximum: 2 } } } };
  await assert.rejects(c.countDocuments(near), LoadError);
  await assert.rejects(c.find(valid).toArray(), LoadError);
  const anyCase = { locale: "en", strength: 2 };
  await assert.rejects(c.find({ list: "X" }).collation(anyCase).toArray(), /not today/);
  await assert.rejects(db.createCollection("named", { timeseries: { timeField: "at" }, collation: anyCase }), /not today/);
  await assert.rejects(db.command({ nonsense: 1 }), /not today/);
  // Operators of the second half.
  const trimmed = { $expr: { $eq: [{ $trim: { input: { $toString: "$m.id" } } }, "1"] } };
  await assert.rejects(c.find(trimmed).toArray(), /not today/);
  await assert.rejects(c.find().project({ x: { $pow: ["$v", 2] } }).toArray(), /not today/);
  await assert.rejects(c.deleteMany({ v: { $gt: 40 } }), /not today/);
  // Operators that need the second half only for decimals.
  const exact = { $expr: { $gt: [{ $add: ["$v", Decimal128.fromString("0.5")] }, 39] } };
  await assert.rejects(c.countDocuments(exact), /not today/);
  assert.equal(await c.countDocuments(), 51);

  wasmMore = bytes("timepail-more.wasm");
  const [aggregated, name] = await Promise.all([c.aggregate([{ $group: { _id: "$m.id", n: { $sum: 1 } } }]).toArray(), c.createIndex({ v: 1 })]);
  assert.deepEqual([aggregated.length, name], [6, "v_1"]);
  assert.equal((await c.deleteMany({ v: { $gt: 40 } })).deletedCount + (await c.deleteOne({ v: 3 })).deletedCount, 10);
  await assert.rejects(db.command({ delete: "system.buckets.c", deletes: [{ q: {}, limit: 0 }] }), { code: 20 });
  assert.deepEqual([await c.countDocuments(trimmed), (await c.find({ v: 2 }).project({ x: { $pow: ["$v", 2] } }).next())!["x"]], [8, 4]);
  assert.equal(await c.countDocuments(exact), 2);
  assert.equal((await c.find({ list: "X" }).collation(anyCase).toArray()).length, await c.countDocuments({ list: "x" }));
  await assert.rejects(c.find({ $expr: { $nonsense: 1 } }).toArray(), { code: 168 });
  await assert.rejects(db.command({ nonsense: 1 }), { code: 59 });
  await c.insertOne({ at: new Date(), m: { id: 9 }, place: { type: "Point", coordinates: [10.01, 50] } });
  await db.command({ expire: 1 });
  await copy();
  assert.equal(await db.collection("copy").countDocuments(), 51);
  await assert.rejects(db.command({ insert: "system.buckets.copy", documents: [{ _id: 1 }], unsafeBucketWrites: true }).then((reply) => Promise.reject({ code: reply["writeErrors"][0].code })), { code: 121 });
  assert.deepEqual([await c.countDocuments(near), await c.countDocuments(valid), (await c.deleteMany(near)).deletedCount], [1, 5, 1]);
  await assert.rejects(c.insertOne({ at: new Date(), v: [1] }), { code: 5930501 });
  assert.equal((await c.find({ v: { $lt: 2 } }).explain())["stages"][0].$cursor.queryPlanner.winningPlan.inputStage.indexName, "v_1");
  assert.equal((await c.updateMany({ "m.id": 1 }, { $set: { "m.site": "B" }, $push: { "m.tags": { $each: [2, 1], $sort: 1 } } })).modifiedCount, 8);
  assert.equal((await c.findOneAndDelete({ "m.site": "B" }, { sort: { at: -1 } }))!["v"], 1);
  await assert.rejects(c.updateOne({ "m.id": 1 }, { $set: { "m.site": "C" } }), { code: 72 });
  await db.command({ collMod: "c", timeseries: { granularity: "minutes" } });
  await db.command({ collMod: "c", index: { name: "v_1", hidden: true } });
  assert.equal((await db.command({ validate: "c", full: true }))["valid"], true);
  assert.equal((await db.command({ collStats: "c" }))["nindexes"], 2);
  assert.deepEqual([await c.dropIndexes(), await c.drop()], [true, true]);
  await db.close();
});

test("time zones are those of the host, in pipelines and in filters that wait for the second half", async () => {
  const db = await open("zones", { storage: "memory", wasm: bytes("timepail.wasm"), wasmMore: bytes("timepail-more.wasm") });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  const start = Date.UTC(2024, 2, 9, 17);
  await c.insertMany(Array.from({ length: 48 }, (_, i) => ({ at: new Date(start + i * 3_600_000) })));
  const date = (unit: string) => ({ $dateTrunc: { date: "$at", unit, timezone: "America/New_York" } });
  const days = await c.aggregate([{ $group: { _id: date("day"), n: { $sum: 1 } } }]).toArray();
  assert.deepEqual(days.map((day) => [(day["_id"] as Date).toISOString(), day["n"]]), [
    ["2024-03-09T05:00:00.000Z", 12],
    ["2024-03-10T05:00:00.000Z", 23],
    ["2024-03-11T04:00:00.000Z", 13],
  ]);
  assert.equal(await c.countDocuments({ $expr: { $eq: [{ $hour: { date: "$at", timezone: "America/New_York" } }, 2] } }), 1);
  const written = await c.aggregate([{ $limit: 1 }, { $project: { _id: 0, at: { $dateToString: { date: "$at", format: "%H:%M%z", timezone: "Asia/Kolkata" } } } }]).toArray();
  assert.deepEqual(written, [{ at: "22:30+0530" }]);
  const lmt = await c.aggregate([{ $limit: 1 }, { $project: { _id: 0, at: { $second: { date: new Date(-3e12), timezone: "America/New_York" } } } }]).toArray();
  assert.deepEqual(lmt, [{ at: 58 }]);
  await assert.rejects(c.countDocuments({ $expr: { $hour: { date: "$at", timezone: "Mars/Base" } } }), { code: 40485 });
  await db.close();
});

test("matches and the texts of doubles are those of the host", async () => {
  const db = await open("texts", { storage: "memory", wasm: bytes("timepail.wasm"), wasmMore: bytes("timepail-more.wasm") });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertOne({ at: new Date(), s: "😀 a1 é22", x: 0.1, n: "1e-7" });
  const value = async (expr: unknown) => (await c.aggregate([{ $project: { _id: 0, v: expr } }]).next())!["v"];
  const find = (name: string, regex: string) => value({ [name]: { input: "$s", regex } });
  assert.deepEqual(await find("$regexFind", "([a-zé])(x)?(\\d)"), { match: "a1", idx: 2, captures: ["a", null, "1"] });
  assert.deepEqual(await find("$regexFindAll", "([a-zé])(\\d)"), [
    { match: "a1", idx: 2, captures: ["a", "1"] },
    { match: "é2", idx: 5, captures: ["é", "2"] },
  ]);
  assert.deepEqual(((await find("$regexFindAll", "")) as { idx: number }[]).map(({ idx }) => idx), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(await find("$regexFindAll", "(?i)X"), []);
  assert.equal(await value({ $toString: { $add: ["$x", 0.2] } }), "0.30000000000000004");
  assert.equal(await value({ $toString: { $multiply: ["$x", -1e22] } }), "-1e+21");
  assert.equal(await value({ $toDouble: "$n" }), 1e-7);
  assert.equal(String(await value({ $toDecimal: "$x" })), "0.100000000000000");
  await assert.rejects(value({ $toDouble: "1e400" }), { code: 241 });
  await db.close();
});

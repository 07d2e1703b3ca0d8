// Data for charts: columns of each series, and the pipelines that timepail/pipelines builds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, type Collection, type Database } from "timepail";
import { latest, window } from "timepail/pipelines";

interface Reading {
  at: Date;
  station: { id: number; site?: string };
  temp?: number;
  name?: string;
}

const MINUTE = 60_000;

/** Two stations with one reading per minute each for two hours; the second sometimes lacks the temperature. */
async function weather(): Promise<{ db: Database; c: Collection<Reading> }> {
  const db = await open("charts", { storage: "memory" });
  const c = await db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station" } });
  for (const id of [1, 2]) {
    await c.insertMany(Array.from({ length: 120 }, (_, i) => ({ at: new Date(i * MINUTE), station: { id, site: "A" }, name: `n${i}`, ...((id === 1 || i % 2 === 0) && { temp: id * 100 + i }) })));
  }
  return { db, c };
}

test("columns are split by series and aligned within each", async () => {
  const { db, c } = await weather();
  const series = await c.find().sort({ at: 1 }).project({ _id: 0, at: 1, temp: 1, name: 1, station: 1 }).toColumns({ by: "station" });
  assert.deepEqual(series.map(({ key }) => key), [{ id: 1, site: "A" }, { id: 2, site: "A" }]);
  for (const [place, { columns }] of series.entries()) {
    assert.deepEqual(Object.keys(columns).sort(), ["at", "name", "temp"]);
    assert.deepEqual(columns.at, Float64Array.from({ length: 120 }, (_, i) => i * MINUTE));
    assert.ok(columns.temp instanceof Float64Array && Array.isArray(columns.name));
    assert.deepEqual([columns.temp.length, columns.temp[2], columns.temp[1], columns.name![3]], [120, (place + 1) * 100 + 2, place === 0 ? 101 : NaN, "n3"]);
  }
  const byId = await c.find().toColumns({ by: "station.id" });
  assert.deepEqual(byId.map(({ key }) => key).sort(), [1, 2]);
  assert.ok(byId[0]!.columns.station, "a path below it leaves the metadata");
  await db.close();
});

test("metadata that only looks alike is not one series", async () => {
  const db = await open("alike", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  const metas = [null, "null", { a: 1 }, '{"a":1}', { a: 1n }, { a: "1" }];
  await c.insertMany(metas.map((m) => ({ at: new Date(0), m, v: 1 })));
  const series = await c.find({}, { useBigInt64: true }).toColumns({ by: "m" });
  assert.deepEqual(series.map(({ columns }) => columns["v"]), metas.map(() => Float64Array.of(1)));
  await db.close();
});

test("rows without the field are a series of their own, and no number", async () => {
  const db = await open("gaps", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  await c.insertMany([7, undefined, NaN, 7, undefined].map((m, i) => ({ at: new Date(i), ...(m !== undefined && { m }), v: i })));
  const series = await c.find().sort({ at: 1 }).toColumns({ by: "m" });
  assert.deepEqual(series.map(({ key, columns }) => [key, [...columns["v"]]]), [[7, [0, 3]], [undefined, [1, 4]], [NaN, [2]]]);
  const texts = await db.createCollection("texts", { timeseries: { timeField: "at", metaField: "m" } });
  await texts.insertOne({ at: new Date(0), m: "abc", ["__proto__"]: 1 });
  const lists = await db.createCollection("lists", { timeseries: { timeField: "at", metaField: "m" } });
  await lists.insertOne({ at: new Date(0), m: [1, 2] });
  assert.deepEqual((await lists.find().toColumns({ by: "m.length" })).map(({ key }) => key), [undefined]);
  const [only] = await texts.find().toColumns({ by: "m.length" });
  assert.ok(only && only.key === undefined && Object.hasOwn(only.columns, "__proto__"), "a text has no fields");
  await db.close();
});

test("columns are the same in batches of any size, folded or not", async () => {
  const db = await open("batches", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  const left = [null, "x", 5n, { a: 1 }, 0.5];
  await c.insertMany(left.flatMap((d, m) => [{ at: new Date(1), m, v: 0, d, only: d }, { at: new Date(2), m, v: 1 }, { at: new Date(3), m, v: 2, d: new Date(7) }]));
  for (const isFolded of [false, true]) {
    if (isFolded) await db.flush();
    for (const batchSize of [1, 2, 3, 1000]) {
      for (const m of left.keys()) {
        const { d, at, ...others } = await c.find({ m, v: { $gte: 1 } }).sort({ at: 1 }).project({ _id: 0, at: 1, d: 1, only: 1 }).batchSize(batchSize).toColumns();
        assert.deepEqual([d, at, others], [Float64Array.of(NaN, 7), Float64Array.of(2, 3), {}], `${isFolded}, ${batchSize}, ${m}`);
      }
    }
  }
  await db.close();
});

test("distinct and findOneAndDelete read as their collection does, and a name that is undefined is made", async () => {
  const db = await open("reading", { storage: "memory" });
  await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  const c = db.collection<{ at: Date; v: bigint }>("c", { useBigInt64: true });
  await c.insertMany([1n, 2n ** 60n].map((v, i) => ({ at: new Date(i), v })));
  assert.deepEqual(await c.distinct("v"), [1n, 2n ** 60n]);
  assert.deepEqual((await c.findOneAndDelete({ v: 1n }))?.v, 1n);
  assert.equal(await c.createIndex({ v: 1 }, { name: undefined }), "v_1");
  assert.equal(await c.countDocuments(), 1);
  const cursor = c.find().map(() => assert.fail("refused"));
  await assert.rejects(cursor.toArray(), /refused/);
  assert.ok(cursor.closed);
  await db.close();
});

test("without rows there are no series, and without the column an error", async () => {
  const { db, c } = await weather();
  assert.deepEqual(await c.find({ temp: -1 }).toColumns({ by: "station" }), []);
  await assert.rejects(c.find().project({ _id: 0, temp: 1 }).toColumns({ by: "station" }), /No row has "station", by which to divide them: does the projection leave it out/);
  await c.insertMany([{ at: new Date(0) } as Reading]);
  assert.deepEqual((await c.find().toColumns({ by: "station.id" })).map(({ key }) => key).sort(), [1, 2, undefined]);
  await db.close();
});

test("latest finds the newest row of each series, and reads only the last buckets", async () => {
  const { db, c } = await weather();
  await db.flush();
  const pipeline = latest({ time: "at", by: "station" });
  assert.deepEqual(pipeline, [
    { $group: { _id: "$station", newest: { $top: { sortBy: { at: -1 }, output: "$$ROOT" } } } },
    { $replaceWith: "$newest" },
  ]);
  const cursor = c.aggregate<Reading>(pipeline).sort({ "station.id": 1 });
  assert.deepEqual(cursor.pipeline.slice(0, 2), pipeline, "a cursor shows what it runs");
  assert.deepEqual((await cursor.toArray()).map(({ at, station }) => [at.getTime(), station.id]), [[119 * MINUTE, 1], [119 * MINUTE, 2]]);
  const plan = await c.aggregate(pipeline).explain("executionStats");
  assert.equal(plan["stages"].find((stage: object) => "$_internalUnpackBucket" in stage).nBucketsUnpacked, 2);
  assert.equal((await c.aggregate(latest({ time: "at" })).toArray()).length, 1);
  await db.close();
});

test("window computes values by time, and by series", async () => {
  const { db, c } = await weather();
  const hours = await c.aggregate([{ $match: { "station.id": 1 } }, ...window({ time: "at", every: "hour", values: ["temp"] })]).toColumns();
  assert.deepEqual(hours, { at: Float64Array.of(0, 60 * MINUTE), temp: Float64Array.of(129.5, 189.5) });
  const values = { high: { $max: "$temp" }, n: { $sum: 1 } };
  const each = await c.aggregate(window({ time: "at", by: "station.id", every: "90 minutes", values })).toColumns({ by: "id" });
  assert.deepEqual(each.sort((a, b) => a.key - b.key).map(({ key, columns }) => [key, [...columns["at"]], [...columns["high"]], [...columns["n"]]]), [
    [1, [0, 90 * MINUTE], [189, 219], [90, 30]],
    [2, [0, 90 * MINUTE], [288, 318], [90, 30]],
  ]);
  assert.deepEqual(await c.aggregate([{ $match: { temp: -1 } }, ...window({ time: "at", every: "day", values: ["temp"] })]).toColumns(), { at: new Float64Array(), temp: new Float64Array() });
  await db.close();
});

test("the pipelines equal handwritten ones", () => {
  const group = { _id: { start: { $dateTrunc: { date: "$t", unit: "day", binSize: 2, timezone: "Europe/Berlin" } }, series: "$m.site" }, a: { $avg: "$a" }, b: { $avg: "$x.b" } };
  assert.deepEqual(window({ time: "t", by: "m.site", every: "2 days", timezone: "Europe/Berlin", values: ["a", "x.b"] }), [
    { $group: group },
    { $sort: { "_id.start": 1 } },
    { $project: { _id: 0, t: "$_id.start", site: "$_id.series", a: 1, b: 1 } },
  ]);
});

test("invalid options, fields and lengths are refused", () => {
  const calls: [() => unknown, RegExp][] = [
    [() => latest({ time: "$at" }), /time must be the name of a field, without a \$/],
    [() => latest({} as never), /time must be/],
    [() => latest({ time: "at", by: "$m" }), /by must be/],
    [() => latest({ time: "at", per: "m" } as never), /Unknown option "per"/],
    [() => window({ time: "at", every: "hourly", values: [] }), /every must be such as "hour" or "15 minutes", not "hourly"/],
    [() => window({ time: "at", evry: "hour", values: [] } as never), /did you mean "every"/],
    [() => window({ time: "at", every: "hour", values: ["at"] }), /named like the time/],
  ];
  for (const [call, message] of calls) assert.throws(call, { name: "TypeError", message });
});

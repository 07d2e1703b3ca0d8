// Every stage of COMPAT.md over the wire: the driver for Node gets what the same pipeline gives in process.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EJSON, Int32 } from "bson";
import { open } from "timepail";
import { MongoClient, served } from "./harness.ts";

const START = Date.UTC(2025, 0, 1);
const HOUR = 3_600_000;
const timeseries = { timeField: "at", metaField: "s" };
const rows = Array.from({ length: 60 }, (_, i) => ({ _id: new Int32(i), at: new Date(START + i * HOUR), s: i % 3, n: i + 0.5, tags: [`t${i % 2}`, "all"], inner: { a: i % 5 }, place: { type: "Point", coordinates: [i / 10 + 0.05, 50.5] } }));
const byTime = { $sort: { at: 1 } };
const near = { type: "Point", coordinates: [3.5, 50.5] };

/** A pipeline for each stage. Results come in an order that is defined, or are sorted. */
const PIPELINES: Record<string, object[]> = {
  $match: [{ $match: { s: 1 } }, byTime],
  $sort: [{ $sort: { n: -1 } }],
  $skip: [byTime, { $skip: 50 }],
  $limit: [byTime, { $limit: 3 }],
  $project: [byTime, { $project: { n: 1, twice: { $multiply: ["$n", 2] } } }],
  $addFields: [byTime, { $addFields: { hour: { $hour: "$at" } } }],
  $set: [byTime, { $set: { "inner.b": "$n" } }],
  $unset: [byTime, { $unset: ["inner", "tags"] }],
  $group: [{ $group: { _id: "$s", mean: { $avg: "$n" }, last: { $top: { sortBy: { at: -1 }, output: "$n" } } } }, { $sort: { _id: 1 } }],
  $count: [{ $match: { n: { $gt: 10 } } }, { $count: "n" }],
  $sortByCount: [{ $match: { n: { $lt: 10 } } }, { $sortByCount: "$inner.a" }, { $sort: { count: 1, _id: 1 } }],
  $unwind: [byTime, { $unwind: { path: "$tags", includeArrayIndex: "i" } }],
  $replaceRoot: [byTime, { $replaceRoot: { newRoot: "$inner" } }],
  $replaceWith: [byTime, { $replaceWith: { n: "$n" } }],
  $indexStats: [{ $indexStats: {} }, { $project: { name: 1, key: 1 } }, { $sort: { name: 1 } }],
  $collStats: [{ $collStats: { count: {} } }, { $project: { count: 1 } }],
  $documents: [{ $documents: [{ a: 1 }, { a: 2 }] }],
  $redact: [byTime, { $redact: { $cond: [{ $lt: ["$n", 5] }, "$$KEEP", "$$PRUNE"] } }],
  $bucket: [{ $bucket: { groupBy: "$n", boundaries: [0, 20, 40], default: "more" } }],
  $bucketAuto: [{ $bucketAuto: { groupBy: "$n", buckets: 4, output: { sum: { $sum: "$n" } } } }],
  $densify: [{ $match: { s: 0 } }, { $project: { at: 1, n: 1 } }, { $densify: { field: "at", range: { step: 1, unit: "hour", bounds: "full" } } }, byTime],
  $downsample: [{ $downsample: { field: "n", points: 10, sortBy: { at: 1 } } }],
  $facet: [{ $facet: { few: [byTime, { $limit: 2 }], all: [{ $count: "n" }] } }],
  $fill: [byTime, { $set: { v: { $cond: [{ $eq: ["$s", 1] }, "$n", null] } } }, { $fill: { sortBy: { at: 1 }, output: { v: { method: "linear" } } } }],
  $geoNear: [{ $geoNear: { near, key: "place", distanceField: "meters", maxDistance: 50_000 } }, { $project: { n: 1 } }],
  $lookup: [{ $match: { n: { $lt: 3 } } }, byTime, { $lookup: { from: "c", localField: "inner.a", foreignField: "inner.a", pipeline: [{ $count: "n" }], as: "same" } }],
  $graphLookup: [{ $match: { n: 0.5 } }, { $graphLookup: { from: "c", startWith: "$inner.a", connectFromField: "s", connectToField: "inner.a", as: "found", maxDepth: 1 } }, { $project: { found: { $size: "$found" } } }],
  $unionWith: [{ $match: { s: 0 } }, { $unionWith: { coll: "c", pipeline: [{ $match: { s: 1 } }] } }, byTime],
  $sample: [{ $sample: { size: 60 } }, byTime],
  $_internalUnpackBucket: [],
  $_unpackBucket: [],
  $_internalInhibitOptimization: [{ $_internalInhibitOptimization: {} }, { $match: { s: 2 } }, byTime],
  $setWindowFields: [{ $setWindowFields: { partitionBy: "$s", sortBy: { at: 1 }, output: { sum: { $sum: "$n", window: { documents: [-2, 0] } }, rate: { $derivative: { input: "$n", unit: "hour" }, window: { range: [-6, 0], unit: "hour" } } } } }, byTime],
  $out: [{ $match: { s: 1 } }, { $out: { db: "stages", coll: "copy", timeseries } }],
};
/** The stages that turn buckets into measurements. */
const UNPACKING: Record<string, object[]> = {
  $_internalUnpackBucket: [{ $_internalUnpackBucket: { exclude: [], timeField: "at", metaField: "s", bucketMaxSpanSeconds: 3600 } }, byTime],
  $_unpackBucket: [{ $_unpackBucket: { timeField: "at", metaField: "s" } }, byTime],
};

test("every stage gives over the wire what it gives in process", async (t) => {
  const compat = readFileSync(join(process.cwd(), "../COMPAT.md"), "utf8");
  const [, table] = /### Stages\n([^]*?)\n### /.exec(compat)!;
  const documented = table!.split("\n").filter((line) => /^\| `\$.*\| (Yes|Partial|Extension) \|/.test(line)).flatMap((line) => line.split("|")[1]!.match(/\$\w+/g)!);
  assert.deepEqual(documented.filter((stage) => !(stage in PIPELINES)), [], "stages without a pipeline here");
  assert.ok(documented.length > 30);
  const own = await open("stages", { storage: "memory" });
  const inProcess = await own.createCollection<any>("c", { timeseries });
  await inProcess.insertMany(rows);
  const server = await served("stages.db");
  const client = new MongoClient(server.uri);
  const db = client.db("stages");
  const overWire = await db.createCollection("c", { timeseries });
  await overWire.insertMany(rows);
  const same = (found: unknown, wanted: unknown): void => assert.deepEqual(EJSON.serialize(found as any), EJSON.serialize(wanted as any));
  for (const stage of documented) {
    await t.test(stage, async () => {
      const pipeline = UNPACKING[stage] ?? PIPELINES[stage]!;
      if (stage === "$documents") return same(await db.aggregate(pipeline).toArray(), [{ a: 1 }, { a: 2 }]);
      const name = stage in UNPACKING ? "system.buckets.c" : "c";
      const found = await db.collection(name).aggregate(pipeline, { batchSize: 7 }).toArray();
      const wanted = await own.collection<any>(name).aggregate(pipeline as any).toArray();
      same(found, wanted);
      if (stage !== "$out") return assert.ok(found.length > 0);
      same(await db.collection("copy").find().sort({ at: 1 }).toArray(), await own.collection<any>("copy").find().sort({ at: 1 }).toArray());
      assert.equal(await db.collection("copy").countDocuments(), 20);
    });
  }
  await client.close();
  await own.close();
  assert.equal(await server.end(), 0);
});

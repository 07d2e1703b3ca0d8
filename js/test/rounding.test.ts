// Sums, means and windows of doubles that are rounded do not depend on how rows are stored, on what is in memory, or on how many rows are computed at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Collection, type Document, open } from "timepail";

const MINUTE_MS = 60_000;

/** Doubles between 0 and 1, by Lehmer's generator. */
function doubles(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function rowsOf(count: number): Document[] {
  const next = doubles(7);
  return Array.from({ length: count }, (_, i) => ({
    at: new Date(1.7e12 + i * 1000 + (i % 3)),
    m: { host: `h${i % 7}`, rack: i % 3 },
    a: Math.round(next() * 1000) / 10,
    b: next() * 1e6 - 5e5,
    ...(next() < 0.7 && { c: Math.round(next() * 100) / 100 }),
    k: Math.floor(next() * 20),
    s: `s${Math.floor(next() * 9)}`,
  }));
}

const of = (value: unknown) => ({ sum: { $sum: value }, mean: { $avg: value }, least: { $min: value }, greatest: { $max: value } });
const by = (_id: unknown, value: unknown) => [{ $group: { _id, ...of(value) } }, { $sort: { _id: 1 } }];
const minute = { $dateTrunc: { date: "$at", unit: "minute" } };

function windows(window: Document): Document[] {
  const output = { sum: { $sum: "$a", window }, mean: { $avg: "$b", window }, covariance: { $covariancePop: ["$a", "$b"], window } };
  const totals = { sum: { $sum: "$sum" }, mean: { $sum: "$mean" }, covariance: { $sum: "$covariance" } };
  return [{ $setWindowFields: { partitionBy: "$m.host", sortBy: { at: 1 }, output } }, { $group: { _id: "$k", ...totals } }, { $sort: { _id: 1 } }];
}

const PIPELINES: Record<string, Document[]> = {
  "all rows": by(null, "$a"),
  "all rows with a field that some lack": by(null, "$c"),
  "by host": by("$m.host", "$b"),
  "by a number": by("$k", "$b"),
  "by a text": by("$s", "$c"),
  "by minute": by(minute, "$b"),
  "by host and minute": [{ $group: { _id: { host: "$m.host", minute }, ...of("$a") } }, { $sort: { "_id.host": 1, "_id.minute": 1 } }],
  "a product": by("$m.rack", { $multiply: ["$a", "$b"] }),
  "several fields": [...by("$m.rack", { $sum: ["$a", "$b", "$c"] }), { $addFields: { more: { $avg: ["$sum", "$mean", 0.7] } } }],
  "behind a filter": [{ $match: { a: { $gt: 33.3 } } }, ...by("$m.rack", "$b")],
  "classes": [{ $bucket: { groupBy: "$a", boundaries: [0, 20, 40.5, 70, 200], output: of("$b") } }],
  "rows around": windows({ documents: [-3, 3] }),
  "rows before": windows({ documents: [-9, -2] }),
  "running": windows({ documents: ["unbounded", "current"] }),
  "half a minute": windows({ range: [-30, 0], unit: "second" }),
};

test("rounded sums do not depend on how rows are stored or on what is in memory", async () => {
  const rows = rowsOf(6000);
  const insert = async (collection: Collection, from: Document[], size: number) => {
    for (let at = 0; at < from.length; at += size) await collection.insertMany(from.slice(at, at + size));
  };
  const collections = new Map<string, Collection>();
  const make = async (name: string, readCacheBytes: number, fill: (collection: Collection, fold: () => Promise<unknown>) => Promise<void>) => {
    const db = await open(`rounding ${name}`, { storage: "memory", parameters: { readCacheBytes } });
    const collection = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    await fill(collection, () => db.flush());
    collections.set(name, collection);
    return db;
  };
  const dbs = [
    await make("buckets", 2 ** 26, async (collection, fold) => {
      await insert(collection, rows, rows.length);
      await fold();
    }),
    await make("journals", 2 ** 26, (collection) => insert(collection, rows, 500)),
    await make("both", 2 ** 26, async (collection, fold) => {
      await insert(collection, rows.slice(0, 3500), 700);
      await fold();
      await insert(collection, rows.slice(3500), 300);
    }),
    await make("nothing in memory", 0, async (collection, fold) => {
      await insert(collection, rows, 2000);
      await fold();
    }),
  ];
  for (const [name, pipeline] of Object.entries(PIPELINES)) {
    let expected: Document[] | undefined;
    for (const [state, collection] of collections) {
      // The second time, columns may be in memory.
      for (const time of ["first", "second"]) {
        const found = await collection.aggregate(pipeline).toArray();
        expected ??= found;
        assert.deepEqual(found, expected, `${name}, ${state}, ${time} time`);
      }
    }
    assert.ok(expected !== undefined && expected.length > 0, name);
  }
  await Promise.all(dbs.map((db) => db.close()));
});

test("a sum of several fields is rounded once, for one row and for many", async () => {
  const db = await open("rounding of fields", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertMany(Array.from({ length: 3000 }, (_, i) => ({ at: new Date(i * MINUTE_MS), x: 0.1, y: 0.2, z: 0.3 })));
  const sum = { $sum: ["$x", "$y", "$z"] };
  const mean = { $avg: ["$x", "$y", "$z"] };
  for (const fold of [false, true]) {
    if (fold) await db.flush();
    assert.deepEqual(await c.aggregate([{ $group: { _id: { sum, mean }, n: { $sum: 1 } } }]).toArray(), [{ _id: { sum: 0.6, mean: 0.19999999999999998 }, n: 3000 }]);
    assert.deepEqual(await c.aggregate([{ $limit: 1 }, { $project: { _id: 0, sum, mean } }]).toArray(), [{ sum: 0.6, mean: 0.19999999999999998 }]);
  }
  await db.close();
});

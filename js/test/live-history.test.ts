// Random histories with the real engine, of one context and of two over one storage: when writes have stopped, every live result equals a fresh query.

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { open, type Collection, type Database, type Document, type LiveQuery } from "timepail";
import { MemoryStorage } from "timepail/testing";

const STEPS = 60;
const HOUR = 3_600_000;
/** The maximum number of turns until a result must be correct; each turn advances the clock a little. */
const TURNS_MAX = 500_000;
const STATIONS = ["roof", "cellar", "attic"];

/** A generator of numbers below one. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Cursor {
  live(options?: object): LiveQuery<unknown>;
  toArray(): Promise<unknown>;
  toColumns(): Promise<unknown>;
}

const day = Math.floor(Date.now() / HOUR) * HOUR - 24 * HOUR;
const byTime = { at: 1, n: 1 } as const;

/** Queries that define the order of their result. */
const QUERIES: Record<string, (c: Collection) => Cursor> = {
  all: (c) => c.find().sort(byTime),
  "the newest of a station": (c) => c.find({ station: "roof" }).sort({ at: -1, n: -1 }).limit(7),
  "a range in the past": (c) => c.find({ at: { $gte: new Date(day + 2 * HOUR), $lt: new Date(day + 5 * HOUR) } }).sort(byTime),
  "behind the first": (c) => c.find({ temp: { $gt: 50 } }).sort({ temp: 1, n: 1 }).skip(3).limit(5),
  "fields of it": (c) => c.find({}, { projection: { _id: 0, at: 1, temp: 1 } }).sort(byTime),
  groups: (c) => c.aggregate([{ $group: { _id: "$station", n: { $sum: 1 }, sum: { $sum: "$temp" }, mean: { $avg: "$temp" }, low: { $min: "$temp" }, high: { $max: "$temp" } } }, { $sort: { _id: 1 } }]),
  hours: (c) => c.aggregate([{ $match: { station: { $ne: "attic" } } }, { $group: { _id: { $dateTrunc: { date: "$at", unit: "hour" } }, n: { $count: {} } } }, { $sort: { _id: 1 } }, { $limit: 6 }]),
  count: (c) => c.aggregate([{ $count: "n" }]),
  "what another collection has": (c) => c.aggregate([{ $sort: byTime }, { $limit: 5 }, { $lookup: { from: "notes", localField: "station", foreignField: "station", as: "notes" } }, { $project: { n: 1, notes: { $size: "$notes" } } }]),
};

/** Makes one random change to the database. */
type Step = (db: Database, c: Collection, next: () => number, n: () => number) => Promise<unknown>;

const row = (next: () => number, n: () => number, at: number): Document => ({ at: new Date(at), station: STATIONS[Math.floor(next() * 3)], temp: Math.round(next() * 1000) / 10, n: n() });
const between = (next: () => number): { $gte: Date; $lt: Date } => {
  const start = day + Math.floor(next() * 20) * HOUR;
  return { $gte: new Date(start), $lt: new Date(start + (1 + next() * 3) * HOUR) };
};

const STEPS_OF: [number, Step][] = [
  [6, (_, c, next, n) => c.insertMany(Array.from({ length: 1 + Math.floor(next() * 40) }, (_, i) => row(next, n, day + 24 * HOUR + i)))],
  [3, (_, c, next, n) => c.insertMany(Array.from({ length: 1 + Math.floor(next() * 20) }, () => row(next, n, day + Math.floor(next() * 24 * HOUR))))],
  [3, (_, c, next, n) => Promise.all(Array.from({ length: 3 }, () => c.insertOne(row(next, n, day + Math.floor(next() * 24 * HOUR)))))],
  [1, (_, c, next, n) => c.insertColumns({ at: Float64Array.of(day + next() * HOUR, day + 3 * HOUR).map(Math.floor), temp: Float64Array.of(next(), next()), n: Float64Array.of(n(), n()) }, { meta: "cellar" })],
  [2, (_, c, next) => c.deleteMany({ at: between(next) })],
  [1, (_, c, next) => c.deleteMany({ station: STATIONS[Math.floor(next() * 3)], temp: { $lt: next() * 40 } })],
  [1, (_, c, next) => c.findOneAndDelete({ temp: { $gt: next() * 100 } }, { sort: byTime })],
  [1, (_, c, next) => c.updateMany({ station: "attic" }, { $set: { station: next() < 0.5 ? "roof" : "cellar" } })],
  [1, (db, _, next) => db.collection("notes").insertOne({ at: new Date(day), station: STATIONS[Math.floor(next() * 3)] })],
  [2, (db) => db.flush()],
  [1, (db) => db.command({ expire: 1 })],
  [1, (db, _, next) => db.command({ collMod: "c", expireAfterSeconds: Math.floor((4 + next() * 16) * 3600) }).then(() => db.command({ expire: 1 }))],
  [0.5, (_, c) => c.drop().then(() => {}, () => {})],
];
const TOTAL = STEPS_OF.reduce((sum, [weight]) => sum + weight, 0);

const create = (db: Database): Promise<unknown> => db.createCollection("c", { timeseries: { timeField: "at", metaField: "station" }, expireAfterSeconds: 86_400 * 3 });

/** Runs a history in the given contexts, each with its own live queries. */
async function history(t: TestContext, seed: number, contexts: Database[]): Promise<void> {
  const next = random(seed);
  let rows = 0;
  const lives: [string, Collection, LiveQuery<unknown>, boolean][] = [];
  for (const [at, db] of contexts.entries()) {
    for (const [name, make] of Object.entries(QUERIES)) {
      const columns = name === "fields of it";
      const live = make(db.collection("c")).live({ throttleMS: Math.floor(next() * 50), columns });
      live.subscribe(() => {}, (error) => assert.fail(`${name}: ${String(error)}`));
      lives.push([`${name} in context ${at}`, db.collection("c"), live, columns]);
    }
  }
  const [first] = contexts as [Database];
  await first.createCollection("notes", { timeseries: { timeField: "at", metaField: "station" } });
  for (let step = 0; step < STEPS; step++) {
    const db = contexts[Math.floor(next() * contexts.length)]!;
    let left = next() * TOTAL;
    const [, work] = STEPS_OF.find(([weight]) => (left -= weight) < 0)!;
    if ((await db.listCollections({ name: "c" }).toArray()).length === 0) await create(db);
    await work(db, db.collection("c"), next, () => rows++);
    for (const [name, c, live, columns] of lives) {
      const cursor = QUERIES[name.replace(/ in context .*/, "")]!(c);
      const fresh = await (columns ? cursor.toColumns() : cursor.toArray());
      for (let turn = 0; turn < TURNS_MAX && !isDeepStrictEqual(live.current, fresh); turn++) {
        t.mock.timers.tick(20);
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.deepEqual(live.current, fresh, `seed ${seed}, step ${step}: ${name}`);
    }
    // Later results must not be older.
    if (step % 10 > 0) continue;
    const before = lives.map(([, , live]) => live.current);
    for (let turn = 0; turn < 100; turn++) {
      t.mock.timers.tick(20);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(lives.map(([, , live]) => live.current), before, `seed ${seed}, step ${step}: at rest`);
  }
  for (const db of contexts) await db.close();
}

const seeds = process.env["SEED"] ? [Number(process.env["SEED"])] : [1, 2, 3];

test("in one context, every result at rest is that of a fresh query", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const seed of seeds) await history(t, seed, [await open("history", { storage: "memory", retention: "manual" })]);
});

test("in two contexts over one storage, each follows what the other writes, of which no message tells", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const seed of seeds) {
    const storage = new MemoryStorage();
    const contexts = [await open("history", { storage, retention: "manual" }), await open("history", { storage, retention: "manual" })];
    await history(t, seed + 100, contexts);
  }
});

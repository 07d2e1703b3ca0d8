// Queries over a million measurements: a filter that few buckets can match, and the newest measurements.

import { open } from "timepail";
import { random } from "./data.js";

const START = Date.UTC(2024, 0, 1);
const SERIES = 10;
const timeseries = { timeField: "at", metaField: "sensor" };

const cents = (x) => Math.round(x * 100) / 100;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Columns of one series, a second apart; one of ten thousand rows has a value above 100, sometimes a few in a row. */
function columns(rows, seed) {
  const next = random(seed);
  const [at, a, b] = Array.from({ length: 3 }, () => new Float64Array(rows));
  for (let row = 0; row < rows; row++) {
    at[row] = START + row * 1000;
    a[row] = row % 50_000 < 5 ? 200 + row / 1e6 : cents(next() * 50);
    b[row] = cents(20 + next());
  }
  return { at, a, b };
}

async function timed(rounds, work) {
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const begin = performance.now();
    await work();
    times.push(performance.now() - begin);
  }
  return median(times);
}

/** An object store of `count` records; resolves to a function that reads them all and keeps those above 100. */
async function records(count) {
  const opening = indexedDB.open("records");
  opening.onupgradeneeded = () => opening.result.createObjectStore("points", { autoIncrement: true });
  const db = await settled(opening);
  const { at, a, b } = columns(count, 1);
  for (let row = 0; row < count; ) {
    const transaction = db.transaction("points", "readwrite");
    const store = transaction.objectStore("points");
    for (const end = Math.min(count, row + 10_000); row < end; row++) store.add({ at: new Date(at[row]), sensor: "s1", a: a[row], b: b[row] });
    await new Promise((resolve, reject) => Object.assign(transaction, { oncomplete: resolve, onabort: reject }));
  }
  return {
    async select() {
      const store = db.transaction("points").objectStore("points");
      return (await settled(store.getAll())).filter((point) => point.a > 100);
    },
    async drop() {
      db.close();
      indexedDB.deleteDatabase("records");
    },
  };
}

const settled = (request) =>
  new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }));

const must = (holds, what) => {
  if (!holds) throw new Error(`wrong answer: ${what}`);
};

export async function queries({ rows, rounds, log }) {
  const results = [];
  const each = rows / SERIES;
  let db = await open("queries", { storage: "indexeddb" });
  const points = await db.createCollection("points", { timeseries });
  const objects = [];
  for (let s = 0; s < SERIES; s++) {
    const of = columns(each, s);
    await points.insertColumns(of, { meta: `s${s}` });
    for (let row = 0; row < each; row++) objects.push({ at: new Date(of.at[row]), sensor: `s${s}`, a: of.a[row], b: of.b[row] });
  }
  await db.close();
  log(`${rows} rows inserted`);

  // Like a page that was just opened, with nothing in memory.
  db = await open("queries", { storage: "indexeddb" });
  await db.flush();
  const stored = db.collection("points");
  const found = SERIES * Math.ceil(each / 50_000) * 5;
  const filter = { a: { $gt: 100 } };
  const first = performance.now();
  must((await stored.find(filter).toArray()).length === found, "the first selective filter");
  const cold = performance.now() - first;
  const own = await timed(rounds, async () => must((await stored.find(filter).toArray()).length === found, "selective filter"));
  const loop = await timed(rounds, async () => must(objects.filter((point) => point.a > 100).length === found, "loop"));
  const some = await records(rows / 10);
  const read = 10 * (await timed(rounds, async () => must((await some.select()).length > 0, "records")));
  await some.drop();
  const { executionStats, stages } = await explained(stored, filter);
  results.push({ task: `${found} rows of ${rows} by a value`, value: own, unit: "ms" });
  results.push({ task: "the same, for the first time", value: cold, unit: "ms" });
  if (executionStats) results.push({ task: "buckets examined, and unpacked", value: executionStats, unit: `and ${stages}` });
  results.push({ task: "a loop over records of IndexedDB (ten times a tenth)", value: read, unit: "ms", ratio: read / own, of: "timepail" });
  results.push({ task: "a loop over objects in memory", value: loop, unit: "ms", ratio: loop / own, of: "timepail" });
  log("selective filter");

  const newest = await timed(rounds, async () => {
    const [point] = await stored.find().sort({ at: -1 }).limit(1).toArray();
    must(point.at.getTime() === START + (each - 1) * 1000, "newest");
  });
  results.push({ task: "the newest row of all", value: newest, unit: "ms" });
  const page = await timed(rounds, async () => must((await stored.find().sort({ at: 1 }).limit(100).toArray()).length === 100, "page"));
  results.push({ task: "the first hundred by time", value: page, unit: "ms" });
  const means = [{ $group: { _id: "$sensor", a: { $avg: "$a" } } }];
  const million = await timed(rounds, async () => must((await stored.aggregate(means).toArray()).length === SERIES, "means"));
  results.push({ task: `mean of each of ${SERIES} series, ${rows} rows`, value: million, unit: "ms" });
  await db.close();
  indexedDB.deleteDatabase("timepail:queries");

  const small = await open("hours", { storage: "indexeddb" });
  const hours = await small.createCollection("points", { timeseries });
  const some_rows = rows / 10 / SERIES;
  for (let s = 0; s < SERIES; s++) await hours.insertColumns(columns(some_rows, s), { meta: `s${s}` });
  await small.flush();
  const hour = { $dateTrunc: { date: "$at", unit: "hour" } };
  const pipeline = [{ $group: { _id: { s: "$sensor", h: hour }, mean: { $avg: "$a" }, low: { $min: "$a" }, high: { $max: "$a" } } }];
  const hourly = await timed(rounds, async () => must((await hours.aggregate(pipeline).toArray()).length === SERIES * Math.ceil(some_rows / 3600), "hourly"));
  results.push({ task: `hourly mean, least and greatest of ${SERIES} series, ${rows / 10} rows`, value: hourly, unit: "ms" });
  await small.close();
  indexedDB.deleteDatabase("timepail:hours");

  const many = await open("many", { storage: "indexeddb" });
  const sensors = await many.createCollection("points", { timeseries });
  for (let s = 0; s < 1000; s++) await sensors.insertColumns(columns(rows / 1000, s), { meta: `s${s}` });
  await many.flush();
  const last = await timed(rounds, async () => {
    const of = Array.from({ length: 1000 }, (_, s) => sensors.find({ sensor: `s${s}` }).sort({ at: -1 }).limit(1).toArray());
    must((await Promise.all(of)).every(([point]) => point.at.getTime() === START + (rows / 1000 - 1) * 1000), "newest of each");
  });
  results.push({ task: "the newest row of each of 1000 series, a find each", value: last, unit: "ms" });
  const group = [{ $sort: { at: -1 } }, { $group: { _id: "$sensor", at: { $first: "$at" }, a: { $first: "$a" } } }];
  const grouped = await timed(rounds, async () => {
    const newest = await sensors.aggregate(group).toArray();
    must(newest.length === 1000 && newest.every(({ at }) => at.getTime() === START + (rows / 1000 - 1) * 1000), "newest of each, grouped");
  });
  results.push({ task: "the same by $sort and $group", value: grouped, unit: "ms" });
  await many.close();
  indexedDB.deleteDatabase("timepail:many");
  return results;
}

/** The numbers of buckets that a query examined and unpacked. */
async function explained(collection, filter) {
  const plan = await collection.find(filter).explain("executionStats");
  const unpack = plan.stages.find((stage) => stage.$_internalUnpackBucket);
  return { executionStats: plan.stages[0].$cursor.executionStats.totalDocsExamined, stages: unpack.nBucketsUnpacked };
}

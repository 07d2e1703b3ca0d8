// Runs every task on every store, in turn, and checks each answer before its time counts.

import * as contenders from "./contenders.js";
import { SERIES, readings } from "./data.js";

const NAMES = Object.keys(contenders);
const COMMIT = 1000;
const HOUR = 3_600_000;
/** Times an IndexedDB put of one object, which a durable insert is compared with. */
const PUT = "bare";

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
// `fresh` documents for each store, because some add keys to the documents.
const copies = (documents) => documents.map((d) => ({ ...d }));

async function timed(work) {
  const begin = performance.now();
  const value = await work();
  return { ms: performance.now() - begin, value };
}

function check(condition, what) {
  if (!condition) throw new Error(`wrong answer: ${what}`);
}

/** Lets the browser finish background work: all stores of a page share one process, one log and one garbage collector. */
const rest = () => new Promise((resolve) => setTimeout(resolve, 1000));

const sum = (values) => values.reduce((a, b) => a + b, 0);
const near = (a, b) => Math.abs(a - b) < 1e-6 * Math.max(1, Math.abs(b));

/**
 * Resolves to `{ task: { contender: median milliseconds } }`.
 * `points` is the number of measurements of ten series, `rounds` that of repetitions with the stores in changing order.
 */
export async function run({ points = 100_000, rounds = 5, log = () => {} } = {}) {
  const documents = readings(points);
  const perSeries = points / SERIES;
  const ofSeries = (sensor) => documents.filter((d) => d.sensor === sensor);
  const start = documents[0].at.getTime();
  const results = {};
  const note = (task, name, ms) => ((results[task] ??= {})[name] ??= []).push(ms);
  const sizes = {};
  for (let round = 0; round < rounds; round++) {
    const order = NAMES.map((_, i) => NAMES[(i + round) % NAMES.length]);
    const stores = {};
    for (const name of order) {
      const input = copies(documents);
      const database = `bench-${name}-${round}`;
      const store = (stores[name] = await contenders[name](database));
      log(`round ${round + 1}/${rounds}: ${name}`);
      const ingest = await timed(async () => {
        for (let i = 0; i < points; i += COMMIT) await store.insert(input.slice(i, i + COMMIT));
      });
      note("ingest", name, ingest.ms);
      // Work after the acknowledgements counts too: timepail folds its journal into buckets.
      const settle = await timed(async () => store.settle?.());
      note("ingest and settle", name, ingest.ms + settle.ms);
      check((await store.count()) === points, `${name} holds ${await store.count()} of ${points} points`);
    }
    for (let i = 0; i < 5; i++) {
      const sensor = `s${(round + i) % SERIES}`;
      const expected = ofSeries(sensor);
      for (const name of order) {
        const store = stores[name];
        const objects = await timed(() => store.series(sensor));
        check(objects.value.length === perSeries, `${name} series has ${objects.value.length} rows`);
        check(near(sum(objects.value.map((d) => d.temp)), sum(expected.map((d) => d.temp))), `${name} series sum`);
        check(objects.value.every((d) => d.at instanceof Date && d.sensor === sensor), `${name} series rows`);
        note("series as objects", name, objects.ms);
        const columns = await timed(() => store.seriesColumns(sensor));
        check(columns.value.at.length === perSeries && near(sum([...columns.value.battery]), sum(expected.map((d) => d.battery))), `${name} columns`);
        note("series as columns", name, columns.ms);
        const from = start + Math.floor((perSeries * 1000 - HOUR) / 2 / 1000) * 1000;
        const hour = await timed(() => store.hour(sensor, from));
        check(hour.value.length === 3600, `${name} hour has ${hour.value.length} rows`);
        note("one hour of one series", name, hour.ms);
        const newest = await timed(() => store.newest(sensor));
        check(newest.value.at.getTime() === expected.at(-1).at.getTime() && near(newest.value.temp, expected.at(-1).temp), `${name} newest`);
        note("newest row of one series", name, newest.ms);
      }
    }
    // In turns of twenty, long enough for a clock of tenths of a millisecond, and short enough that slow phases affect every store.
    const singles = order.map((name) => ({ name, rest: readings(200, { start: start + points * 1000, seed: round + 1 }), ms: 0 }));
    while (singles[0].rest.length > 0) {
      for (const turn of singles) {
        const documents = turn.rest.splice(0, 20);
        turn.ms += (await timed(async () => {
          for (const document of documents) await stores[turn.name].insert([document]);
        })).ms;
      }
    }
    for (const { name, ms } of singles) note("one durable point", name, ms / 200);
    for (const name of order) {
      const hundred = readings(100, { start: start + points * 2000, seed: round + 1 });
      note("a hundred points at once", name, (await timed(() => Promise.all(hundred.map((document) => stores[name].insert([document]))))).ms);
    }
    const half = start + (perSeries / 2) * 1000;
    for (const name of order.filter((name) => stores[name].deleteBefore)) {
      await rest(); // a few milliseconds would vanish in what the store before has left, which may go on for seconds
      note("delete the older half", name, (await timed(() => stores[name].deleteBefore(half))).ms);
      check((await stores[name].count()) === points / 2 + 300, `${name} after the delete`);
    }
    if (stores.timepail.stats) {
      const stats = await stores.timepail.stats();
      sizes.bytesPerPoint = Number(stats.storageSize) / Number(stats.timeseries.numMeasurements);
    }
    for (const name of order) {
      await stores[name].close();
      const prefix = name === "timepail" ? "timepail:" : "";
      indexedDB.deleteDatabase(`${prefix}bench-${name}-${round}`); // RxDB's close has deleted its own, which have other names
    }
  }
  const medians = Object.fromEntries(
    Object.entries(results).map(([task, byName]) => [task, Object.fromEntries(Object.entries(byName).map(([n, v]) => [n, median(v)]))]),
  );
  return { points, rounds, put: PUT, medians, sizes };
}

/** Stores `points` measurements in one store, in commits of 1000, and keeps them, to measure the size on disk. */
export async function fill({ name, points }) {
  const documents = readings(points);
  const store = await contenders[name](`disk-${name}`);
  for (let i = 0; i < points; i += COMMIT) await store.insert(documents.slice(i, i + COMMIT));
  await store.settle?.();
}

globalThis.fill = fill;
globalThis.bench = run;

// Commits of many series, out of order, into a large collection; and a first query with a full journal.

import { open } from "timepail";
import { random } from "./data.js";

const ROWS = 1000;
const START = Date.UTC(2024, 0, 1);
const timeseries = { timeField: "at", metaField: "sensor" };

const cents = (x) => Math.round(x * 100) / 100;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Commits of 1000 rows, a second apart in each of `series` series; `late` of them come up to an hour too late. */
function* commits(count, { series, late = 0, start = START }) {
  const next = random(7);
  const steps = ROWS / series;
  for (let commit = 0; commit < count; commit++) {
    const rows = [];
    for (let step = 0; step < steps; step++) {
      const second = commit * steps + step;
      for (let s = 0; s < series; s++) {
        const lag = next() < late ? Math.floor(next() * 3600) : 0;
        rows.push({ at: new Date(start + (second - lag) * 1000), sensor: `s${s}`, a: cents(next() * 50), b: cents(20 + next()), c: 4, d: second });
      }
    }
    yield rows;
  }
}

async function fresh(name, more) {
  const db = await open(name, { storage: "indexeddb" });
  const points = await db.createCollection("points", { timeseries: { ...timeseries, ...more } });
  return { db, points };
}

/** Milliseconds to insert everything and to fold it. */
async function ingest(points, input, db) {
  const batches = [...input];
  const begin = performance.now();
  for (const rows of batches) await points.insertMany(rows, { ordered: false });
  await db.flush();
  return performance.now() - begin;
}

async function drop({ db }, name) {
  await db.close();
  indexedDB.deleteDatabase(`timepail:${name}`);
}

export async function shapes({ commits: count, growth, rounds, log }) {
  const results = [];
  const rate = (ms, rows) => rows / ms;
  // The shapes take turns, so that slow phases of the machine affect all of them.
  const shape = { ten: { series: 10 }, many: { series: 1000 }, late: { series: 10, late: 0.3 } };
  const times = { ten: [], many: [], late: [] };
  for (let round = 0; round < rounds; round++) {
    for (const name of Object.keys(shape)) {
      const store = await fresh(`${name}-${round}`);
      times[name].push(await ingest(store.points, commits(count, shape[name]), store.db));
      await drop(store, `${name}-${round}`);
    }
    log(`shapes, round ${round + 1}`);
  }
  const [ten, many, late] = Object.values(times).map((of) => rate(median(of), count * ROWS));
  results.push({ task: "10 series, in order, folds counted in", value: ten, unit: "k points/s" });
  results.push({ task: "one row of each of 1000 series a commit", value: many, unit: "k points/s", ratio: many / ten, of: "10 series" });
  results.push({ task: "30 % up to an hour late", value: late, unit: "k points/s", ratio: ten / late, of: "the time in order" });

  // Writes before 0.2 million points are faster, because the browser has not begun to compact its files.
  const part = 200;
  const [early, grown] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const store = await fresh(`growth-${round}`);
    const rates = [];
    for (let done = 0; done < growth; done += part * ROWS)
      rates.push(rate(await ingest(store.points, commits(part, { series: 10, start: START + (done / 10) * 1000 }), store.db), part * ROWS));
    early.push(rates[1]);
    grown.push(median(rates.slice(-3)));
    await drop(store, `growth-${round}`);
  }
  log("growth");
  results.push({ task: `ingest of points up to ${(growth / 1e6).toFixed(1)} million`, value: median(grown), unit: "k points/s", ratio: median(grown) / median(early), of: "those behind 0.2 million" });

  // Rows an hour apart fill a bucket each, unless the collection knows.
  const hourly = async (count, more) => {
    const store = await fresh(`hourly-${count}`, more);
    const at = Array.from({ length: count }, (_, hour) => START + hour * 3600_000);
    const begin = performance.now();
    await store.points.insertColumns({ at, a: at.map((ms) => cents(Math.sin(ms))) }, { meta: "s0" });
    const inserted = performance.now() - begin;
    await store.db.flush();
    const folded = performance.now() - begin - inserted;
    await drop(store, `hourly-${count}`);
    return [inserted / count, folded / count].map((ms) => ms * 1000);
  };
  const spread = { few: [], many: [], known: [] };
  for (let round = 0; round < rounds; round++) {
    spread.few.push(await hourly(4000));
    spread.many.push(await hourly(16_000));
    spread.known.push(await hourly(16_000, { granularity: "hours" }));
  }
  log("hourly rows");
  for (const [place, step] of ["insert", "fold"].entries()) {
    const [few, many, known] = Object.values(spread).map((of) => median(of.map((times) => times[place])));
    results.push({ task: `${step} of 16 000 hourly rows, a bucket each`, value: many, unit: "us a row", ratio: many / few, of: "a row of 4000" });
    results.push({ task: `${step} of 16 000 hourly rows with granularity "hours"`, value: known, unit: "us a row" });
  }

  // Just below the size that a context folds by itself; many small sections take longest to read.
  const full = await fresh("full");
  for (const rows of commits(265, { series: 1000 })) await full.points.insertMany(rows, { ordered: false });
  // A second context has none of it in memory; the journals of the first still exist.
  const begin = performance.now();
  const db = await open("full", { storage: "indexeddb" });
  const newest = await db.collection("points").find({ sensor: "s3" }).toArray();
  results.push({ task: `open and answer ${newest.length} rows out of a full journal`, value: performance.now() - begin, unit: "ms" });
  await db.close();

  // One point at a time, alone and while a fold of all those buckets runs.
  const waits = async (goesOn) => {
    const times = [];
    do {
      const at = performance.now();
      await full.points.insertOne({ at: new Date(START + 3000_000 + times.length), sensor: "one", a: 1, b: 2, c: 3, d: 4 });
      times.push(performance.now() - at);
    } while (goesOn(times.length));
    return times.sort((a, b) => a - b);
  };
  const alone = await waits((count) => count < 100);
  let folding = true;
  const flush = full.db.flush().then(() => void (folding = false));
  const beside = await waits(() => folding);
  await flush;
  results.push({ task: "one point, median of 100", value: median(alone), unit: "ms" });
  results.push({ task: `one point beside a fold of 1000 buckets, median of ${beside.length}`, value: median(beside), unit: "ms" });
  results.push({ task: "the same, longest", value: beside.at(-1), unit: "ms" });
  await drop(full, "full");
  return results;
}

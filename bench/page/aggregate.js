// The same aggregations by timepail from IndexedDB, by DuckDB and SQLite in memory, by mingo over objects, and by a loop over typed arrays.
//
// Every store answers before it is timed, and the answers are compared.

import { open } from "timepail";
import { random } from "./data.js";

const START = Date.UTC(2024, 0, 1);
const HOUR = 3_600_000;
const timeseries = { timeField: "at", metaField: "sensor" };
const cents = (x) => Math.round(x * 100) / 100;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Rows one second apart, with two random walks. */
function columns(rows, seed) {
  const next = random(seed + 1);
  const [at, a, b] = Array.from({ length: 3 }, () => new Float64Array(rows));
  let [walk, drift] = [20, 50];
  for (let row = 0; row < rows; row++) {
    at[row] = START + row * 1000;
    a[row] = walk = cents(walk + next() - 0.5);
    b[row] = drift = cents(drift + (next() - 0.5) / 10);
  }
  return { at, a, b };
}

const seriesOf = (count, rows) => Array.from({ length: count }, (_, s) => ({ sensor: `s${s}`, ...columns(rows, s) }));

// ------------------------------------------------------------------------------------------------------------- stores

async function timepail(series) {
  const name = `aggregate-${series.length}-${series[0].at.length}`;
  let db = await open(name, { storage: "indexeddb" });
  const points = await db.createCollection("points", { timeseries });
  for (const { sensor, ...of } of series) await points.insertColumns(of, { meta: sensor });
  await db.flush();
  await db.close();
  db = await open(name, { storage: "indexeddb" });
  return {
    points: db.collection("points"),
    close: async () => {
      await db.close();
      indexedDB.deleteDatabase(`timepail:${name}`);
    },
  };
}

/** One table of `sensor`, `at` in milliseconds, `a` and `b`. */
async function duckdb(series) {
  const lib = await import("/others/duckdb.js");
  const worker = new Worker("/duckdb/duckdb-browser-eh.worker.js");
  const db = new lib.AsyncDuckDB(new lib.VoidLogger(), worker);
  await db.instantiate(new URL("/duckdb/duckdb-eh.wasm", location.href).href);
  const connection = await db.connect();
  await connection.query('create table points(sensor varchar, "at" bigint, a double, b double)');
  for (const { sensor, at, a, b } of series) {
    const lines = Array.from(at, (time, row) => `${sensor},${time},${a[row]},${b[row]}`);
    await db.registerFileText("rows.csv", lines.join("\n"));
    await connection.query("copy points from 'rows.csv' (header false)");
    await db.dropFile("rows.csv");
  }
  return {
    rows: async (sql) => {
      const table = await connection.query(sql);
      const fields = table.schema.fields.map((field) => field.name);
      const found = fields.map((_, i) => table.getChildAt(i).toArray());
      return Array.from({ length: table.numRows }, (_, row) => Object.fromEntries(fields.map((name, i) => [name, found[i][row]])));
    },
    close: async () => {
      await connection.close();
      await db.terminate();
      worker.terminate();
    },
  };
}

let sqliteModule;
async function sqlite(series) {
  sqliteModule ??= (await import("/sqlite/index.mjs")).default({ print() {}, printErr() {} });
  const { oo1 } = await sqliteModule;
  const db = new oo1.DB(":memory:");
  db.exec("create table points(sensor text, at integer, a real, b real, primary key (sensor, at)) without rowid; begin");
  const insert = db.prepare("insert into points values (?, ?, ?, ?)");
  for (const { sensor, at, a, b } of series) {
    for (let row = 0; row < at.length; row++) insert.bind([sensor, at[row], a[row], b[row]]).stepReset();
  }
  insert.finalize();
  db.exec("commit");
  return { rows: (sql) => db.exec(sql, { rowMode: "object", returnValue: "resultRows" }), close: () => db.close() };
}

async function mingo(series) {
  const { aggregate } = await import("/others/mingo.js");
  const points = series.flatMap(({ sensor, at, a, b }) => Array.from(at, (time, row) => ({ sensor, at: new Date(time), a: a[row], b: b[row] })));
  return { aggregate: (pipeline) => aggregate(points, pipeline), close() {} };
}

// -------------------------------------------------------------------------------------------------------------- timing

/** Times every store in turn, `rounds` times; the answers must agree. Resolves to `{ store: median milliseconds }`. */
async function compare(rounds, ways) {
  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  let wanted;
  for (let round = -1; round < rounds; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const begin = performance.now();
      const answer = await way();
      const ms = performance.now() - begin;
      wanted ??= answer;
      if (answer.length !== wanted.length || answer.some((number, i) => !near(number, wanted[i]))) throw new Error(`${name} says otherwise`);
      // The first run warms up compilers and caches and does not count.
      if (round >= 0) times[name].push(ms);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

// --------------------------------------------------------------------------------------------------------------- tasks

const sumOf = (rows, ...fields) => [rows.length, ...fields.map((field) => rows.reduce((sum, row) => sum + Number(row[field]), 0))];

/** Mean, minimum and maximum per hour of each series. */
async function hourly(rounds, log) {
  const series = seriesOf(10, 10_000);
  const [own, duck, lite, over] = [await timepail(series), await duckdb(series), await sqlite(series), await mingo(series)];
  log("hourly: stores are filled");
  const _id = { sensor: "$sensor", hour: { $dateTrunc: { date: "$at", unit: "hour" } } };
  const pipeline = [{ $group: { _id, mean: { $avg: "$a" }, low: { $min: "$a" }, high: { $max: "$a" } } }];
  const sql = `select sensor, "at" // ${HOUR} as hour, avg(a) as mean, min(a) as low, max(a) as high from points group by 1, 2`;
  const of = (rows) => sumOf(rows, "mean", "low", "high");
  const times = await compare(rounds, {
    timepail: async () => of(await own.points.aggregate(pipeline).toArray()),
    duckdb: async () => of(await duck.rows(sql)),
    sqlite: async () => of(lite.rows(sql.replace("//", "/"))),
    mingo: async () => of(over.aggregate(pipeline)),
    loop: async () => of(series.flatMap(({ at, a }) => spans(at, a, HOUR))),
  });
  for (const store of [own, duck, lite, over]) await store.close();
  return { task: "hourly mean, min, max; 10 series, 100 000 rows", times };
}

function spans(at, a, length) {
  const found = new Map();
  for (let row = 0; row < at.length; row++) {
    const span = Math.floor(at[row] / length);
    let group = found.get(span);
    if (group === undefined) found.set(span, (group = { sum: 0, count: 0, low: Infinity, high: -Infinity }));
    group.sum += a[row];
    group.count++;
    if (a[row] < group.low) group.low = a[row];
    if (a[row] > group.high) group.high = a[row];
  }
  return [...found.values()].map(({ sum, count, low, high }) => ({ mean: sum / count, low, high, count }));
}

/** The newest row of each of a thousand series, by two pipelines. */
async function newest(rounds, log) {
  const series = seriesOf(1000, 1000);
  const [own, duck, lite] = [await timepail(series), await duckdb(series), await sqlite(series)];
  log("newest: stores are filled");
  const sorted = [{ $sort: { at: -1 } }, { $group: { _id: "$sensor", at: { $first: "$at" }, a: { $first: "$a" } } }];
  const topped = [{ $group: { _id: "$sensor", last: { $top: { sortBy: { at: -1 }, output: { at: "$at", a: "$a" } } } } }];
  const of = (rows) => sumOf(rows, "at", "a");
  const sql = {
    duckdb: 'select sensor, max("at") as "at", arg_max(a, "at") as a from points group by sensor',
    sqlite: "select sensor, max(at) as at, a from points group by sensor",
  };
  const others = {
    duckdb: async () => of(await duck.rows(sql.duckdb)),
    sqlite: async () => of(lite.rows(sql.sqlite)),
    loop: async () => of(series.map(({ at, a }) => ({ at: at.at(-1), a: a.at(-1) }))),
  };
  const bySort = await compare(rounds, { timepail: async () => of(await own.points.aggregate(sorted).toArray()), ...others });
  const tops = async () => of((await own.points.aggregate(topped).toArray()).map((row) => row.last));
  const byTop = await compare(rounds, { timepail: tops, ...others });
  for (const store of [own, duck, lite]) await store.close();
  return [
    { task: "newest row of each of 1000 series, $sort and $group", times: bySort },
    { task: "the same by $top", times: byTop },
  ];
}

/** One group per series of ten, and a downsampled line of a thousand points, over a million rows. */
async function million(rounds, log) {
  const series = seriesOf(10, 100_000);
  const [own, duck, lite] = [await timepail(series), await duckdb(series), await sqlite(series)];
  log("a million rows: stores are filled");
  const pipeline = [{ $group: { _id: "$sensor", mean: { $avg: "$a" }, low: { $min: "$b" }, count: { $count: {} } } }];
  const sql = "select sensor, avg(a) as mean, min(b) as low, count(*) as count from points group by sensor";
  const of = (rows) => sumOf(rows, "mean", "low", "count");
  const groups = await compare(rounds, {
    timepail: async () => of(await own.points.aggregate(pipeline).toArray()),
    duckdb: async () => of(await duck.rows(sql)),
    sqlite: async () => of(lite.rows(sql)),
    loop: async () => of(series.map(({ a, b }) => ({ mean: a.reduce((x, y) => x + y, 0) / a.length, low: b.reduce((x, y) => Math.min(x, y)), count: a.length }))),
  });
  const summaries = await summed(rounds, series, own, duck, lite);
  for (const store of [own, duck, lite]) await store.close();

  const one = seriesOf(1, 1_000_000);
  const line = await timepail(one);
  const chosen = [{ $downsample: { field: "a", points: 1000, sortBy: { at: 1 }, method: "lttb" } }, { $project: { _id: 0, at: 1, a: 1 } }];
  const sums = ({ at, a }) => [at.length, at.reduce((x, y) => x + y - START, 0), a.reduce((x, y) => x + y, 0)];
  const times = await compare(rounds, {
    timepail: async () => sums(await line.points.aggregate(chosen).toColumns()),
    loop: async () => sums(lttb(one[0].at, one[0].a, 1000)),
  });
  await line.close();
  return [
    { task: "mean, min, count of 10 series, 1 000 000 rows", times: groups },
    ...summaries,
    { task: "1000 of 1 000 000 rows by largest triangles", times },
  ];
}

/** Aggregates that summaries of buckets answer, and the same computed from columns. */
async function summed(rounds, series, own, duck, lite) {
  const ask = async (pipeline) => own.points.aggregate(pipeline).toArray();
  const compared = async (task, pipeline, of, sql, loop) => {
    const times = await compare(rounds, {
      timepail: async () => of(await ask(pipeline)),
      columns: async () => of(await ask([{ $_internalInhibitOptimization: {} }, ...pipeline])),
      duckdb: async () => of(await duck.rows(sql)),
      sqlite: async () => of(lite.rows(sql.replace("//", "/"))),
      loop: async () => of(loop()),
    });
    return { task, times };
  };
  const day = { $dateTrunc: { date: "$at", unit: "day" } };
  const daily = [{ $group: { _id: { sensor: "$sensor", day }, low: { $min: "$a" }, high: { $max: "$a" }, count: { $count: {} } } }];
  return [
    await compared(
      "$count of 1 000 000 rows",
      [{ $count: "count" }],
      (rows) => sumOf(rows, "count"),
      "select count(*) as count from points",
      () => [{ count: series.reduce((sum, { at }) => sum + at.length, 0) }],
    ),
    await compared(
      "count of each of 10 series, 1 000 000 rows",
      [{ $group: { _id: "$sensor", count: { $sum: 1 } } }],
      (rows) => sumOf(rows, "count"),
      "select sensor, count(*) as count from points group by sensor",
      () => series.map(({ at }) => ({ count: at.length })),
    ),
    await compared(
      "daily min, max and count of 10 series, 1 000 000 rows",
      daily,
      (rows) => sumOf(rows, "low", "high", "count"),
      `select sensor, "at" // ${24 * HOUR} as day, min(a) as low, max(a) as high, count(*) as count from points group by 1, 2`,
      () => series.flatMap(({ at, a }) => spans(at, a, 24 * HOUR)),
    ),
  ];
}

/** Largest triangle three buckets over two arrays, in plain JavaScript. */
function lttb(at, a, points) {
  const chosen = [0];
  const width = (at.length - 2) / (points - 2);
  const bound = (group) => Math.floor(group * width) + 1;
  for (let group = 0; group < points - 2; group++) {
    const [from, to] = [bound(group), bound(group + 1)];
    const [nextFrom, nextTo] = group === points - 3 ? [at.length - 1, at.length] : [to, bound(group + 2)];
    let [x, y] = [0, 0];
    for (let row = nextFrom; row < nextTo; row++) {
      x += at[row] - START;
      y += a[row];
    }
    [x, y] = [x / (nextTo - nextFrom), y / (nextTo - nextFrom)];
    const last = chosen.at(-1);
    const [x0, y0] = [at[last] - START, a[last]];
    let [best, area] = [from, -1];
    for (let row = from; row < to; row++) {
      const size = Math.abs((x0 - x) * (a[row] - y0) - (x0 - (at[row] - START)) * (y - y0));
      if (size > area) [best, area] = [row, size];
    }
    chosen.push(best);
  }
  chosen.push(at.length - 1);
  return { at: chosen.map((row) => at[row]), a: chosen.map((row) => a[row]) };
}

export async function aggregate({ rounds, log }) {
  return [await hourly(rounds, log), ...(await newest(rounds, log)), ...(await million(rounds, log))];
}

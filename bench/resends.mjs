// Measurements that are sent again: a collection with `dedupe` beside one without, beside Dexie's `bulkPut` (in headless Chromium), and beside
// `INSERT OR REPLACE` of SQLite (in Node, in memory). Prints tables in Markdown; only ratios within one run mean anything.
//
// `reads` compares queries with and without `dedupe`, over folded measurements and with a tenth of them unfolded.
//
//   node bench/resends.mjs [--points 100000] [--rounds 5] [--in chromium,node,reads]

import { parseArgs } from "node:util";
import { open } from "../js/dist/node.js";
import { MemoryStorage } from "../js/dist/testing.js";
import { withPage } from "./chromium.mjs";
import { readings } from "./page/data.js";

const { values: args } = parseArgs({
  options: { points: { type: "string", default: "100000" }, rounds: { type: "string", default: "5" }, in: { type: "string", default: "chromium,node,reads" } },
});
const [points, rounds] = [Number(args.points), Number(args.rounds)];
const places = args.in.split(",");
const COMMIT = 1000;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const ms = (value) => (value === undefined ? "–" : value.toFixed(value < 10 ? 2 : 1));

function table(title, columns, medians) {
  console.log(`\n${title}\n\n| ms | ${columns.join(" | ")} |\n|---|${"---|".repeat(columns.length)}`);
  for (const [task, of] of Object.entries(medians)) console.log(`| ${task} | ${columns.map((name) => ms(of[name])).join(" | ")} |`);
}

if (places.includes("chromium")) {
  const order = { points, rounds };
  const { medians, bytes } = await withPage((page) =>
    page.evaluate(async (order) => (await import("./resends.js")).resends({ ...order, log: globalThis.progress }), order),
  );
  table(`Chromium, ${points} measurements in commits of ${COMMIT}`, ["plain", "dedupe", "dexie"], medians);
  for (const [name, size] of Object.entries(bytes)) if (size) console.log(`- ${name}: ${size} bytes of buckets`);
}

if (places.includes("node")) {
  const { default: start } = await import("@sqlite.org/sqlite-wasm");
  const sqlite3 = await start({ print() {}, printErr() {} });
  const documents = readings(points);
  const stores = {
    plain: () => timepail(),
    dedupe: () => timepail({ dedupe: {} }),
    sqlite,
  };
  const times = {};
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(stores);
    for (const name of round % 2 ? names : names.toReversed()) {
      const store = await stores[name]();
      for (const task of name === "plain" ? ["sent once"] : ["sent once", "sent again"]) {
        const begin = performance.now();
        for (let i = 0; i < points; i += COMMIT) await store.insert(documents.slice(i, i + COMMIT));
        await store.settle();
        ((times[task] ??= {})[name] ??= []).push(performance.now() - begin);
      }
      if (name !== "plain" && (await store.count()) !== points) throw new Error(`${name} has ${await store.count()} measurements`);
      await store.close();
    }
  }
  const medians = Object.fromEntries(Object.entries(times).map(([task, of]) => [`${task}, and folded`, Object.fromEntries(Object.entries(of).map(([name, all]) => [name, median(all)]))]));
  table(`Node, in memory, ${points} measurements in commits of ${COMMIT}`, ["plain", "dedupe", "sqlite"], medians);

  async function timepail(options) {
    const { db, collection } = await opened(options);
    return {
      insert: (rows) => collection.insertMany(rows, { ordered: false }),
      settle: () => db.flush(),
      count: () => collection.countDocuments(),
      close: () => db.close(),
    };
  }

  function sqlite() {
    const db = new sqlite3.oo1.DB(":memory:");
    db.exec("CREATE TABLE points (sensor TEXT, at INTEGER, temp REAL, humidity REAL, pressure REAL, battery REAL, PRIMARY KEY (sensor, at)) WITHOUT ROWID");
    const statement = db.prepare("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?)");
    return {
      insert(rows) {
        db.exec("BEGIN");
        for (const { sensor, at, temp, humidity, pressure, battery } of rows) statement.bind([String(sensor), +at, temp, humidity, pressure, battery]).stepReset();
        db.exec("COMMIT");
      },
      settle() {},
      count: () => db.selectValue("SELECT count(*) FROM points"),
      close() {
        statement.finalize();
        db.close();
      },
    };
  }
}

if (places.includes("reads")) {
  const documents = readings(points).toSorted((a, b) => a.at - b.at);
  const [first, last] = [documents[0], documents.at(-1)];
  const settled = Math.floor(points * 0.9);
  const minutesAgo = (minutes) => new Date(+last.at - minutes * 60_000);
  const hourly = [{ $group: { _id: { $dateTrunc: { date: "$at", unit: "hour" } }, mean: { $avg: "$temp" } } }];
  const newest = [{ $sort: { sensor: 1, at: -1 } }, { $group: { _id: "$sensor", at: { $first: "$at" }, temp: { $first: "$temp" } } }];
  const queries = {
    "newest ten": (all) => all.find().sort({ at: -1 }).limit(10).toArray(),
    "newest of each": (all) => all.aggregate(newest).toArray(),
    "last ten minutes of one": (all) => all.find({ sensor: first.sensor, at: { $gte: minutesAgo(10) } }).toArray(),
    "means by hour": (all) => all.aggregate(hourly).toArray(),
    count: (all) => all.countDocuments(),
    "a filter by value": (all) => all.countDocuments({ temp: { $gt: first.temp } }),
  };
  const stores = { plain: await opened({}), dedupe: await opened({ dedupe: {} }) };
  const times = {};
  for (const phase of ["folded", "a tenth unfolded"]) {
    for (const { db, collection } of Object.values(stores)) {
      const rows = phase === "folded" ? documents.slice(0, settled) : documents.slice(settled);
      for (let i = 0; i < rows.length; i += COMMIT) await collection.insertMany(rows.slice(i, i + COMMIT), { ordered: false });
      if (phase === "folded") await db.flush();
    }
    for (let round = 0; round < 20 * rounds; round++) {
      for (const [query, run] of Object.entries(queries)) {
        const names = Object.keys(stores);
        for (const name of round % 2 ? names : names.toReversed()) {
          const begin = performance.now();
          await run(stores[name].collection);
          // The first round reads from storage, and joins unfolded rows once.
          if (round > 0) (((times[`${query}, ${phase}`] ??= {})[name]) ??= []).push(performance.now() - begin);
        }
      }
    }
  }
  const medians = Object.entries(times).map(([task, { plain, dedupe }]) => [task, { plain: median(plain), dedupe: median(dedupe), ratio: median(dedupe) / median(plain) }]);
  table(`Node, queries over ${points} measurements`, ["plain", "dedupe", "ratio"], Object.fromEntries(medians));
  for (const { db } of Object.values(stores)) await db.close();
}

async function opened(options) {
  const db = await open("resends", { storage: new MemoryStorage() });
  return { db, collection: await db.createCollection("points", { timeseries: { timeField: "at", metaField: "sensor" }, ...options }) };
}

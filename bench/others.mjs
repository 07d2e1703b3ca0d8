// Queries over measurements of other kinds than those of the Time Series Benchmark Suite, by timepail and DuckDB, both in memory, in Node. Answers are compared
// before a time counts; only ratios within one run mean anything.
//
//   node bench/others.mjs [--rounds 5] [--clock cpu] [--data trades,pods] [--only text,text] [--unfolded] [--json file]      --unfolded measures before a fold

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { open } from "../js/dist/node.js";
import { devices } from "./others/devices.mjs";
import { events } from "./others/events.mjs";
import { keys } from "./others/keys.mjs";
import { meters } from "./others/meters.mjs";
import { payments } from "./others/payments.mjs";
import { plants } from "./others/plants.mjs";
import { pods } from "./others/pods.mjs";
import { requests } from "./others/requests.mjs";
import { rides } from "./others/rides.mjs";
import { stations } from "./others/stations.mjs";
import { trades } from "./others/trades.mjs";
import { visits } from "./others/visits.mjs";
import { CLOCKS, difference, geometricMean, median, timed, warm } from "./tsbs/compare.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    clock: { type: "string", default: "wall" },
    data: { type: "string" },
    only: { type: "string" },
    unfolded: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const clock = CLOCKS[args.clock];
if (clock === undefined) throw new Error(`--clock is ${Object.keys(CLOCKS).join(" or ")}`);
const all = [trades, keys, rides, pods, stations, meters, visits, payments, devices, requests, events, plants];
const named = args.data?.split(",");
const unknown = named?.filter((name) => all.every((data) => data.name !== name)) ?? [];
if (unknown.length > 0) throw new Error(`there are no data called ${unknown.join(", ")}`);
const wanted = args.only?.toLowerCase().split(",");

const require = createRequire(import.meta.url);
const ROWS_AT_ONCE = 20_000;

async function startDuckdb() {
  const lib = require("@duckdb/duckdb-wasm/blocking");
  const dist = dirname(require.resolve("@duckdb/duckdb-wasm/dist/duckdb-eh.wasm"));
  const bundle = (name) => ({ mainModule: join(dist, `duckdb-${name}.wasm`), mainWorker: "" });
  const db = await lib.createDuckDB({ mvp: bundle("mvp"), eh: bundle("eh") }, new lib.VoidLogger(), lib.NODE_RUNTIME);
  await db.instantiate();
  return { db, connection: db.connect() };
}

/** Runs `fill` with up to `ROWS_AT_ONCE` rows at a time. */
async function inParts(rows, fill) {
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) await fill(rows.slice(start, start + ROWS_AT_ONCE));
}

async function fillTimepail(db, { name, meta }, rows) {
  const timeseries = { timeField: "time", ...(meta && { metaField: meta }) };
  const collection = await db.createCollection(name, { timeseries });
  await inParts(rows, (part) => collection.insertMany(part));
  if (!args.unfolded) await db.flush();
}

async function fillDuckdb({ db, connection }, { name, meta, columns, cell: valueOf, after }, rows) {
  const names = Object.keys(columns);
  connection.query(`create table ${name} (${names.map((column) => `${column} ${columns[column]}`).join(", ")})`);
  const cell = (row, column) => {
    const value = (valueOf ? valueOf(row, column) : (row[column] ?? row[meta]?.[column])) ?? "";
    if (typeof value === "string" && /[",;]/.test(value)) return `"${value}"`;
    return value instanceof Date ? value.getTime() : value;
  };
  await inParts(rows, (part) => {
    db.registerFileText("rows.csv", part.map((row) => names.map((column) => cell(row, column)).join()).join("\n"));
    connection.query(`copy ${name} from 'rows.csv' (header false, nullstr '')`);
    db.dropFile("rows.csv");
  });
  if (after) connection.query(after);
}

/** The rows of an answer as plain objects. */
function rowsOf(table) {
  const names = table.schema.fields.map(({ name }) => name);
  const columns = names.map((_, at) => table.getChildAt(at)).map((column) => (column.nullCount > 0 ? Array.from(column) : column.toArray()));
  return Array.from({ length: table.numRows }, (_, row) => Object.fromEntries(names.map((name, at) => [name, columns[at][row]])));
}

/** Median times of both engines, which take turns. The first round warms up compilers and caches. */
async function measure(asks, query) {
  const times = Object.fromEntries(Object.keys(asks).map((engine) => [engine, []]));
  for (let round = 0; round <= Number(args.rounds); round++) {
    const answers = {};
    for (const engine of round % 2 ? Object.keys(asks) : Object.keys(asks).toReversed()) {
      if (round === 0) await warm(asks[engine]);
      const { answer, ms } = await timed(asks[engine], clock);
      answers[engine] = answer;
      if (round > 0) times[engine].push(ms);
    }
    const found = difference(answers.DuckDB, answers.timepail, { keys: query.keys ?? ["_id"] });
    if (found !== undefined) throw new Error(found);
  }
  return Object.fromEntries(Object.entries(times).map(([engine, values]) => [engine, median(values)]));
}

const short = (value) => (value < 10 ? value.toPrecision(2) : value.toFixed(0));
const duckdb = await startDuckdb();
const db = await open("others", { storage: "memory" });
const results = [];
console.log("| data | query | timepail, ms | × DuckDB |\n|---|---|---|---|");
for (const data of all.filter(({ name }) => named?.includes(name) ?? true)) {
  const rows = data.rows();
  await fillTimepail(db, data, rows);
  await fillDuckdb(duckdb, data, rows);
  for (const [name, query] of Object.entries(data.queries)) {
    if (!(wanted?.some((text) => name.toLowerCase().includes(text)) ?? true)) continue;
    const asks = { timepail: () => db.collection(data.name).aggregate(query.pipeline).toArray(), DuckDB: async () => rowsOf(duckdb.connection.query(query.sql)) };
    try {
      const ms = await measure(asks, query);
      results.push({ data: data.name, query: name, ms });
      console.log(`| ${data.name} | ${name} | ${short(ms.timepail)} | ${short(ms.DuckDB / ms.timepail)} |`);
    } catch (error) {
      console.error(`error: ${data.name}, ${name}: ${error.message}`);
      process.exitCode = 1;
    }
  }
}
await db.close();
duckdb.connection.close();
const ratios = results.map(({ ms }) => ms.DuckDB / ms.timepail);
if (ratios.length > 0) console.log(`\ngeometric mean of ${ratios.length}: ${short(geometricMean(ratios))}; DuckDB wins ${ratios.filter((ratio) => ratio < 1).length}`);
if (args.json) writeFileSync(args.json, `${JSON.stringify({ rounds: Number(args.rounds), clock: args.clock, results }, null, 2)}\n`);

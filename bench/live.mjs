// Unfolded rows compared with the same rows in buckets: a dashboard right after its inserts, in headless Chromium and in Node 24 with SQLite and
// in memory. Prints tables in Markdown; only ratios within one run mean anything.
//
//   node bench/live.mjs [--rounds 9] [--large] [--seconds 30] [--only compare,growth,ingest,folding,written,dashboard,others] [--in chromium,sqlite,memory] [--json file]

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { node24 } from "../js/scripts/runtimes.mjs";
import { ROOT, must } from "../js/scripts/steps.mjs";
import { bytesUnder, withPage } from "./chromium.mjs";
import * as report from "./live/report.mjs";
import { bundleRxdb } from "./rxdb.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string", default: "9" },
    large: { type: "boolean", default: false },
    seconds: { type: "string", default: "30" },
    only: { type: "string", default: "compare,growth,ingest,folding,written,dashboard,others" },
    in: { type: "string", default: "chromium,sqlite,memory" },
    json: { type: "string" },
  },
});
const rounds = Number(args.rounds);
const parts = args.only.split(",");
const places = args.in.split(",");

const DASHBOARD = { series: 20, perCommit: 20, stepMs: 100 };
const SINGLES = { series: 10, perCommit: 1, stepMs: 1000 };
const MANY = { series: 1000, perCommit: 1000, stepMs: 1000 };
const NEWEST = ["newest of each, `$sort` and `$group`", "newest of each, `$top`"];
const LAST = "last minute of one sensor";

/** The cases and their rows in each place. They differ, because a commit takes a millisecond in Chromium and nearly nothing in memory. */
const CASES = [
  { task: "dashboard: 20 sensors, 20 rows a commit", options: DASHBOARD, rows: { chromium: 60_000, sqlite: 60_000, memory: 200_000 } },
  {
    task: "single inserts of 10 devices",
    options: SINGLES,
    rows: { chromium: 10_000, sqlite: 100_000 },
    names: [LAST, ...NEWEST, "newest ten of all, `sort` and `limit`", "count", "count of each sensor"],
  },
  {
    task: "1000 series, a row of each a commit",
    options: MANY,
    rows: { chromium: 100_000, sqlite: 100_000, memory: 100_000 },
    names: [LAST, ...NEWEST, "count", "count of each sensor", "few rows by a value"],
    isDeleting: true,
  },
];
const SIZES = [10_000, 60_000, 240_000, 360_000, ...(args.large ? [2_000_000] : [])];
const GROWING = [
  "five minutes of all sensors, one find to columns",
  "the last ten seconds, a find a sensor",
  ...NEWEST,
  LAST,
  "newest ten of all, `sort` and `limit`",
  "count",
  "few rows by a value",
];
const WRITTEN = [
  { task: "20 sensors, 20 rows a commit", options: DASHBOARD, rows: 200_000 },
  ...[1, 20, 1000].map((series) => ({ task: `one row a commit, ${series} series`, options: { series, perCommit: 1, stepMs: 1000 }, rows: 20_000 })),
];

/** Runs one part in one place, each in its own process and with its own files. */
async function run(place, order, { afterwards, more } = {}) {
  if (place === "chromium") return withPage((page) => page.evaluate(async (order) => (await import("./live/browser.js")).live(order), order), more, afterwards);
  const output = await must(node24(), ["--no-warnings", join(ROOT, "bench/live/node.mjs"), JSON.stringify({ place, ...order })], { show: "stderr" });
  return JSON.parse(output.trimEnd().split("\n").at(-1));
}

const results = {};
const wants = (part) => parts.includes(part);

if (wants("compare")) {
  results.compare = [];
  for (const { task, options, rows, names, isDeleting } of CASES) {
    for (const place of places.filter((place) => rows[place] !== undefined)) {
      const found = await run(place, { part: "compare", options, rows: rows[place], rounds, names, isDeleting, isAlone: place === "memory" });
      results.compare.push({ task, place, rows: rows[place], perCommit: options.perCommit, ...found });
      report.comparison(results.compare.at(-1));
    }
  }
}
if (wants("growth")) {
  results.growth = [];
  for (const place of places) {
    const found = await run(place, { part: "growth", options: DASHBOARD, sizes: SIZES, rounds: Math.min(rounds, 5), names: GROWING });
    results.growth.push({ place, sizes: found });
    report.growing(results.growth.at(-1));
  }
}
if (wants("ingest")) {
  results.ingest = [];
  for (const place of places) results.ingest.push({ place, ...(await run(place, { part: "ingest", options: DASHBOARD, rows: 60_000, rounds: Math.min(rounds, 3) })) });
  report.rates(results.ingest);
}
if (wants("folding")) {
  results.folding = [];
  for (const place of places) results.folding.push({ place, ...(await run(place, { part: "folding", options: DASHBOARD, rows: 60_000, rounds })) });
  report.folding(results.folding);
}
if (wants("written")) {
  results.written = [];
  if (places.includes("sqlite")) for (const order of WRITTEN) results.written.push({ place: "sqlite", ...(await run("sqlite", { part: "written", ...order })) });
  if (places.includes("chromium")) {
    const base = await onDisk({ options: DASHBOARD, rows: 0 });
    for (const { task, options, rows } of WRITTEN.map((order) => ({ ...order, rows: Math.min(order.rows, 60_000) }))) {
      const [unfolded, folded] = [await onDisk({ options, rows }), await onDisk({ options, rows, isFlushed: true })];
      results.written.push({ place: "chromium", task, rows, disk: (unfolded - base) / rows, diskFolded: (folded - base) / rows });
    }
  }
  report.bytes(results.written);
}
if (wants("dashboard") && places.includes("chromium")) {
  results.dashboard = await run("chromium", { part: "dashboard", options: DASHBOARD, rows: 60_000, seconds: Number(args.seconds) });
  report.pictures(results.dashboard, args.seconds);
}
if (wants("others") && places.includes("chromium")) {
  const more = { "/others/": await bundleRxdb(), "/sqlite/": join(ROOT, "bench/node_modules/@sqlite.org/sqlite-wasm/dist") };
  results.others = await run("chromium", { part: "others", options: DASHBOARD, rows: 60_000, rounds: Math.min(rounds, 5) }, { more });
  report.others(results.others);
}
if (args.json) writeFileSync(args.json, `${JSON.stringify(results, null, 2)}\n`);

/** Bytes of the folder of IndexedDB when the browser has ended. */
async function onDisk(order) {
  let bytes;
  await run("chromium", { part: "fill", ...order }, { afterwards: (profile) => (bytes = bytesUnder(join(profile, "Default/IndexedDB"))) });
  return bytes;
}

// Runs the browser benchmark in headless Chromium and prints times and ratios. Ratios within one run are what counts.
//
//   node bench/run.mjs [--points 100000] [--rounds 5] [--json file]

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bytesUnder, withPage } from "./chromium.mjs";
import { bundleRxdb } from "./rxdb.mjs";

const { values: args } = parseArgs({
  options: { points: { type: "string", default: "100000" }, rounds: { type: "string", default: "5" }, json: { type: "string" } },
});
const NAMES = ["timepail", "bare", "dexie", "rxdb", "buckets"];

const more = { "/others/": await bundleRxdb() };
const points = Number(args.points);
const result = await withPage(
  (page) => page.evaluate(({ points, rounds }) => globalThis.bench({ points, rounds, log: globalThis.progress }), { points, rounds: Number(args.rounds) }),
  more,
);
// Each runs in a browser of its own, which ends before its files are measured.
result.disk = {};
for (const name of NAMES) {
  await withPage((page) => page.evaluate((order) => globalThis.fill(order), { name, points }), more, (profile) => {
    result.disk[name] = bytesUnder(join(profile, "Default/IndexedDB"));
  });
}
print(result);
if (args.json) writeFileSync(args.json, `${JSON.stringify(result, null, 2)}\n`);

function print({ points, rounds, medians, sizes, disk }) {
  const cell = (text) => String(text).padStart(18);
  console.log(`${points} points of 10 series, 4 fields beside time and series; medians of ${rounds} rounds, milliseconds (ratio to timepail)`);
  console.log("task".padEnd(26) + NAMES.map(cell).join(""));
  for (const [task, times] of Object.entries(medians)) {
    const own = times.timepail;
    const show = (name) => (times[name] === undefined ? "–" : name === "timepail" ? own.toFixed(2) : `${times[name].toFixed(2)} (${(times[name] / own).toFixed(2)}×)`);
    console.log(task.padEnd(26) + NAMES.map((name) => cell(show(name))).join(""));
  }
  console.log("bytes on disk a point".padEnd(26) + NAMES.map((name) => cell((disk[name] / points).toFixed(1))).join(""));
  console.log(`timepail ingests ${Math.round(points / (medians.ingest.timepail / 1000)).toLocaleString("en")} points a second`);
  console.log(`timepail stores ${sizes.bytesPerPoint.toFixed(1)} bytes a point`);
}

// Runs the browser benchmark in headless Chromium and prints times and ratios. Ratios within one run are what counts.
//
//   node bench/run.mjs [--points 100000] [--rounds 5] [--json file]

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({
  options: { points: { type: "string", default: "100000" }, rounds: { type: "string", default: "5" }, json: { type: "string" } },
});
const result = await withPage((page) =>
  page.evaluate(({ points, rounds }) => globalThis.bench({ points, rounds, log: globalThis.progress }), {
    points: Number(args.points),
    rounds: Number(args.rounds),
  }),
);
print(result);
if (args.json) writeFileSync(args.json, `${JSON.stringify(result, null, 2)}\n`);

function print({ points, rounds, medians, sizes }) {
  const names = ["timepail", "bare", "dexie", "buckets"];
  const cell = (text) => String(text).padStart(16);
  console.log(`${points} points of 10 series, 4 fields beside time and series; medians of ${rounds} rounds, milliseconds (ratio to timepail)`);
  console.log("task".padEnd(26) + names.map(cell).join(""));
  for (const [task, times] of Object.entries(medians)) {
    const own = times.timepail;
    const show = (name) => (times[name] === undefined ? "–" : name === "timepail" ? own.toFixed(2) : `${times[name].toFixed(2)} (${(times[name] / own).toFixed(2)}×)`);
    console.log(task.padEnd(26) + names.map((name) => cell(show(name))).join(""));
  }
  console.log(`timepail ingests ${Math.round(points / (medians.ingest.timepail / 1000)).toLocaleString("en")} points a second`);
  console.log(`timepail stores ${sizes.bytesPerPoint.toFixed(1)} bytes a point`);
}

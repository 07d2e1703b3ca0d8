// How the speed of timepail depends on the shape and the amount of data, in headless Chromium.
//
//   node bench/shapes.mjs [--commits 1000] [--growth 2000000] [--rounds 5]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({
  options: { commits: { type: "string", default: "1000" }, growth: { type: "string", default: "2000000" }, rounds: { type: "string", default: "5" } },
});
const results = await withPage((page) =>
  page.evaluate(async (options) => (await import("./shapes.js")).shapes({ ...options, log: globalThis.progress }), {
    commits: Number(args.commits),
    growth: Number(args.growth),
    rounds: Number(args.rounds),
  }),
);
for (const { task, value, unit, ratio, of } of results)
  console.log(`${task.padEnd(60)}${value.toFixed(1).padStart(10)} ${unit.padEnd(12)}${ratio === undefined ? "" : `${ratio.toFixed(2)} × ${of}`}`);

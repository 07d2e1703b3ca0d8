// Queries over a million measurements in headless Chromium.
//
//   node bench/queries.mjs [--rows 1000000] [--rounds 9]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { rows: { type: "string", default: "1000000" }, rounds: { type: "string", default: "9" } } });
const results = await withPage((page) =>
  page.evaluate(async (options) => (await import("./queries.js")).queries({ ...options, log: globalThis.progress }), {
    rows: Number(args.rows),
    rounds: Number(args.rounds),
  }),
);
for (const { task, value, unit, ratio, of } of results)
  console.log(`${task.padEnd(60)}${value.toFixed(1).padStart(10)} ${unit.padEnd(12)}${ratio === undefined ? "" : `${ratio.toFixed(2)} × ${of}`}`);

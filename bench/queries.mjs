// Queries over a million measurements, and what indexes cost, in headless Chromium.
//
//   node bench/queries.mjs [--rows 1000000] [--rounds 9] [--only queries|indexes]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { rows: { type: "string", default: "1000000" }, rounds: { type: "string", default: "9" }, only: { type: "string" } } });
const names = args.only ? [args.only] : ["queries", "indexes"];
const results = await withPage((page) =>
  page.evaluate(
    async ({ names, ...options }) => {
      const results = [];
      for (const name of names) results.push(...(await (await import(`./${name}.js`))[name]({ ...options, log: globalThis.progress })));
      return results;
    },
    { names, rows: Number(args.rows), rounds: Number(args.rounds) },
  ),
);
for (const { task, value, unit, ratio, of } of results)
  console.log(`${task.padEnd(60)}${value.toFixed(1).padStart(10)} ${unit.padEnd(12)}${ratio === undefined ? "" : `${ratio.toFixed(2)} × ${of}`}`);

// Aggregations of timepail, from IndexedDB, beside databases that keep everything in memory, in headless Chromium.
//
//   node bench/aggregate.mjs [--rounds 9]

import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const MODULES = join(HERE, "node_modules");
const BUILT = join(HERE, "results/others");

const { values: args } = parseArgs({ options: { rounds: { type: "string", default: "9" } } });

// DuckDB and mingo consist of many modules; a page loads them as one bundle.
const { build } = createRequire(join(HERE, "../js/package.json"))("esbuild");
mkdirSync(BUILT, { recursive: true });
await build({
  entryPoints: { duckdb: "@duckdb/duckdb-wasm", mingo: "mingo" },
  absWorkingDir: HERE,
  outdir: BUILT,
  bundle: true,
  format: "esm",
  splitting: true,
  minify: true,
  logLevel: "warning",
});
const more = {
  "/others/": BUILT,
  "/duckdb/": join(MODULES, "@duckdb/duckdb-wasm/dist"),
  "/sqlite/": join(MODULES, "@sqlite.org/sqlite-wasm/dist"),
};
const tasks = await withPage(
  (page) =>
    page.evaluate(async (options) => (await import("./aggregate.js")).aggregate({ ...options, log: globalThis.progress }), {
      rounds: Number(args.rounds),
    }),
  more,
);

// `columns` is timepail without pushdown or other optimisation.
const names = ["timepail", "columns", "duckdb", "sqlite", "mingo", "loop"];
const cell = (text) => String(text).padStart(17);
console.log("milliseconds, medians (ratio to timepail)".padEnd(52) + names.map(cell).join(""));
for (const { task, times } of tasks) {
  const show = (name) => {
    if (times[name] === undefined) return "–";
    const ratio = name === "timepail" ? "" : ` (${(times[name] / times.timepail).toFixed(1)}×)`;
    return times[name].toFixed(1) + ratio;
  };
  console.log(task.padEnd(52) + names.map((name) => cell(show(name))).join(""));
}

// `timepail import` of CSV, JSON and BSON beside `insertColumns` and `insertMany` of the same rows, which are in memory already. Each in a process of its own, over a
// SQLite file of its own, in turns. The time of `timepail --help` is subtracted from an import, because starting is not part of its rate. Prints a table in Markdown.
//
//   node bench/files.mjs [--rows 500000] [--rounds 5]

import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { node24 } from "../js/scripts/runtimes.mjs";
import { JS, ROOT, must } from "../js/scripts/steps.mjs";
import { rowsOf } from "./files/rows.mjs";

const { EJSON, serialize } = createRequire(join(JS, "package.json"))("bson");
const { values: args } = parseArgs({ options: { rows: { type: "string", default: "500000" }, rounds: { type: "string", default: "5" } } });
const folder = mkdtempSync(join(tmpdir(), "timepail-files-"));
const cli = [node24(), ["--no-warnings", join(ROOT, "js/dist/cli.js")]];
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const all = [...rowsOf(Number(args.rows))];
const text = (value) => (value instanceof Date ? value.toISOString() : String(value).includes(",") ? `"${value}"` : value);
const FILES = {
  CSV: ["rows.csv", `time,station,temp,wind,state\n${all.map((row) => Object.values(row).map(text).join(",")).join("\n")}\n`],
  JSON: ["rows.ndjson", `${all.map((row) => EJSON.stringify(row)).join("\n")}\n`],
  BSON: ["rows.bson", Buffer.concat(all.map((row) => serialize(row)))],
};

async function timed(...call) {
  const start = performance.now();
  await must(...call);
  return performance.now() - start;
}

try {
  const times = {};
  const note = (name, ms) => (times[name] ??= []).push(ms);
  for (const [name, content] of Object.values(FILES)) writeFileSync(join(folder, name), content);
  for (let round = 0; round < Number(args.rounds); round++) {
    const direct = await must(node24(), ["--no-warnings", join(ROOT, "bench/files/in_process.mjs"), join(folder, `direct${round}.db`), args.rows]);
    for (const [name, ms] of Object.entries(JSON.parse(direct))) note(name, ms);
    const [program, flags] = cli;
    const help = await timed(program, [...flags, "--help"]);
    for (const [name, [file]] of Object.entries(FILES)) {
      const options = ["--time-field", "time", "--meta-field", "station", "--granularity", "seconds", "--quiet"];
      note(`import of ${name}`, (await timed(program, [...flags, "import", join(folder, `${name}${round}.db`), "c", join(folder, file), ...options])) - help);
    }
  }
  const base = median(times["insertColumns"]);
  console.log(`${args.rows} rows, ${args.rounds} rounds, medians\n\n| | ms | rows/s | ratio | MB/s |\n|---|---|---|---|---|`);
  for (const [name, of] of Object.entries(times)) {
    const ms = median(of);
    const file = FILES[name.replace("import of ", "")]?.[0];
    const rate = file ? (statSync(join(folder, file)).size / 1e3 / ms).toFixed(0) : "–";
    console.log(`| ${name} | ${ms.toFixed(0)} | ${Math.round((Number(args.rows) / ms) * 1000).toLocaleString("en-US")} | ${(ms / base).toFixed(1)} | ${rate} |`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

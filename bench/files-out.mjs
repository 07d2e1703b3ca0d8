// Files out: `timepail export` in every format, beside reading the same cursor to an array and as columns. Each run has a process of its own over one SQLite file, in
// turns. Prints a table in Markdown; only ratios within one run mean anything.
//
//   node bench/files-out.mjs [--points 300000] [--rounds 5]

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { node24 } from "../js/scripts/runtimes.mjs";
import { JS, ROOT } from "../js/scripts/steps.mjs";

const { values: args } = parseArgs({ options: { points: { type: "string", default: "300000" }, rounds: { type: "string", default: "5" } } });
const points = Number(args.points);
const folder = mkdtempSync(join(tmpdir(), "timepail-files-"));
const file = join(folder, "plant.db");
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Runs a program of `timepail/file`; answers what it prints. */
function program(source) {
  const { status, stdout, stderr } = spawnSync(node24(), ["--no-warnings", "--input-type=module", "-e", `import { openFile } from "timepail/file";\nawait using db = await openFile(${JSON.stringify(file)});\n${source}`], { cwd: JS });
  if (status !== 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString() || "null");
}

/** Code that prints the time and the memory of a program at its end. */
const told = "console.log(JSON.stringify({ ms: performance.now() - start, mb: process.resourceUsage().maxRSS / 1024 }));";
const read = (how) => () => program(`const start = performance.now(); const cursor = db.collection("weather").find().sort({ at: 1 }); ${how} ${told}`);

function exported(ending) {
  return () => {
    const output = join(folder, `out.${ending}`);
    // The process prints its memory at its end. Its summary has the time of the export.
    const measure = `process.on("exit", () => process.stdout.write(String(process.resourceUsage().maxRSS / 1024)));`;
    const { status, stdout, stderr } = spawnSync(node24(), ["--no-warnings", "--import", `data:text/javascript,${encodeURIComponent(measure)}`, join(ROOT, "js/dist/cli.js"), "export", file, "weather", output, "--force"]);
    if (status !== 0) throw new Error(stderr.toString());
    const [, rows, seconds] = /^([\d,]+) rows .* in ([\d.]+) s/.exec(stderr.toString());
    if (Number(rows.replaceAll(",", "")) !== points) throw new Error(`${rows} rows of ${points}`);
    return { ms: Number(seconds) * 1000, mb: Number(stdout), bytes: statSync(output).size };
  };
}

const TASKS = {
  "read to an array": read(`if ((await cursor.toArray()).length !== ${points}) throw new Error("rows are missing");`),
  "read in batches of 4096": read(`let n = 0; for await (const row of cursor.batchSize(4096)) n++; if (n !== ${points}) throw new Error("rows are missing");`),
  "read as columns": read(`if ((await cursor.toColumns()).at.length !== ${points}) throw new Error("rows are missing");`),
  ...Object.fromEntries(["csv", "csv.gz", "ndjson", "bson"].map((ending) => [`export .${ending}`, exported(ending)])),
};

try {
  program(`
    const weather = await db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } });
    const ROWS = 10_000;
    for (let from = 0; from < ${points}; from += ROWS) {
      const at = Float64Array.from({ length: Math.min(ROWS, ${points} - from) }, (_, i) => 1.75e12 + Math.floor((from + i) / 20) * 1000);
      await weather.insertColumns({ at, temp: at.map((_, i) => Math.round(200 + 50 * Math.sin(i / 300)) / 10), load: at.map(() => Math.random()) }, { meta: { id: (from / ROWS) % 20, site: "A" } });
    }
    await db.flush();
  `);
  const found = Object.fromEntries(Object.keys(TASKS).map((name) => [name, []]));
  for (let round = 0; round < Number(args.rounds); round++) for (const [name, task] of Object.entries(TASKS)) found[name].push(task());
  const base = median(found["read to an array"].map(({ ms }) => ms));
  console.log(`${points} measurements, medians of ${args.rounds} rounds\n\n| task | rows a second | time, to an array = 1 | memory, MB | bytes a row |\n|---|---|---|---|---|`);
  for (const [name, runs] of Object.entries(found)) {
    const ms = median(runs.map((each) => each.ms));
    const { bytes } = runs[0];
    console.log(`| ${name} | ${Math.round(points / ms)} 000 | ${(ms / base).toFixed(2)} | ${Math.round(median(runs.map(({ mb }) => mb)))} | ${bytes ? Math.round(bytes / points) : ""} |`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

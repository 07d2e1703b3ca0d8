// What a row costs with each operator, accumulator, key and stage, in Node, in memory: the slowest first. Only figures of one run are comparable.
//
//   node bench/operators.mjs [--rounds 4] [--rows 72000] [--journal] [--only text,text] [--json file]      --journal measures before a fold

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { open } from "../js/dist/node.js";
import { ACCUMULATORS, EXPRESSIONS, KEYS, PIPELINES } from "./operators/cases.mjs";
import { fill } from "./operators/data.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string", default: "4" },
    rows: { type: "string", default: "72000" },
    journal: { type: "boolean", default: false },
    only: { type: "string" },
    json: { type: "string" },
  },
});

const group = (_id, value) => [{ $group: { _id, value } }];
const named = (kind, cases, pipelineOf) => Object.entries(cases).map(([name, what]) => ({ name: `${kind}: ${name}`, pipeline: pipelineOf(what) }));
const all = [
  ...named("greatest", EXPRESSIONS, (expression) => group(null, { $max: expression })),
  ...named("by host", ACCUMULATORS, (accumulator) => group("$tags.host", accumulator)),
  ...named("by text", ACCUMULATORS, (accumulator) => group("$state", accumulator)),
  ...named("mean by", KEYS, (key) => group(key, { $avg: "$b" })),
  ...named("pipeline", PIPELINES, (pipeline) => pipeline),
];
const wanted = args.only?.toLowerCase().split(",");
const cases = all.filter(({ name }) => wanted?.some((text) => name.toLowerCase().includes(text)) ?? true);
if (cases.length === 0) throw new Error(`no case has ${args.only} in its name`);

const db = await open("operators", { storage: "memory" });
const points = await db.createCollection("points", { timeseries: { timeField: "time", metaField: "tags" } });
const rows = await fill(points, Number(args.rows));
if (!args.journal) await db.flush();

const results = [];
for (const { name, pipeline } of cases) {
  let ms = Number.POSITIVE_INFINITY;
  for (let round = 0; round < Number(args.rounds); round++) {
    const start = performance.now();
    await points.aggregate(pipeline).toArray();
    ms = Math.min(ms, performance.now() - start);
  }
  results.push({ name, nsPerRow: (ms * 1e6) / rows });
}
await db.close();

results.sort((a, b) => b.nsPerRow - a.nsPerRow);
console.log(`${rows} rows, ${args.journal ? "in journals" : "in buckets"}\n\n| case | ns a row |\n|---|---|`);
for (const { name, nsPerRow } of results) console.log(`| ${name} | ${nsPerRow.toFixed(0)} |`);
if (args.json) writeFileSync(args.json, `${JSON.stringify({ rows, journal: args.journal, results }, null, 2)}\n`);

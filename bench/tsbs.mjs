// The queries of the Time Series Benchmark Suite, devops (cpu only) and IoT, by timepail, DuckDB and SQLite, all in memory, in Node. Answers are compared before
// a time counts; only ratios within one run mean anything.
//
//   node bench/tsbs.mjs [--rounds 9] [--hosts 100] [--hours 6] [--size small] [--clock cpu] [--only name,name] [--json file]

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { CLOCKS, difference, geometricMean, median, timed, warm } from "./tsbs/compare.mjs";
import { devopsData } from "./tsbs/devops-data.mjs";
import { devopsQueries } from "./tsbs/devops.mjs";
import { enginesOver } from "./tsbs/engines.mjs";
import { iotData } from "./tsbs/iot-data.mjs";
import { iotQueries } from "./tsbs/iot.mjs";
import { generator } from "./tsbs/random.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string" },
    hosts: { type: "string" },
    hours: { type: "string" },
    size: { type: "string", default: "full" },
    clock: { type: "string", default: "wall" },
    only: { type: "string" },
    json: { type: "string" },
  },
});
const SIZES = { full: { rounds: 9, hosts: 100, hours: 6 }, small: { rounds: 2, hosts: 12, hours: 2 } };
if (SIZES[args.size] === undefined) throw new Error(`--size is ${Object.keys(SIZES).join(" or ")}`);
const clock = CLOCKS[args.clock];
if (clock === undefined) throw new Error(`--clock is ${Object.keys(CLOCKS).join(" or ")}`);
const [rounds, hosts, hours] = ["rounds", "hosts", "hours"].map((name) => Number(args[name] ?? SIZES[args.size][name]));
const only = args.only?.split(",");

const USES = [
  { make: devopsData, queries: devopsQueries },
  { make: iotData, queries: iotQueries },
];
const unknown = only?.filter((name) => USES.every(({ queries }) => queries[name] === undefined)) ?? [];
if (unknown.length > 0) throw new Error(`no query is called ${unknown.join(", ")}`);

/** Times of each engine. All of them get the same query in a round, and another one in the next. The first round warms up compilers and caches. */
async function measure(name, draw, data, engines) {
  const times = Object.fromEntries(Object.keys(engines).map((engine) => [engine, []]));
  const rows = [];
  for (let round = 0; round <= rounds; round++) {
    const question = draw(generator(`${name} ${round}`), data);
    const turn = Object.keys(engines);
    turn.push(...turn.splice(0, round % turn.length));
    const answers = {};
    for (const engine of turn) {
      const ask = () => engines[engine].ask(question);
      if (round === 0) await warm(ask);
      const { answer, ms } = await timed(ask, clock);
      answers[engine] = answer;
      if (round > 0) times[engine].push(ms);
    }
    for (const [engine, answer] of Object.entries(answers)) {
      const found = difference(answers.DuckDB, answer, question);
      if (found !== undefined) throw new Mismatch(`round ${round}, ${engine} against DuckDB: ${found}`);
    }
    if (round > 0) rows.push(answers.DuckDB.length);
  }
  return { query: name, rows: median(rows), ms: Object.fromEntries(Object.entries(times).map(([engine, all]) => [engine, median(all)])) };
}

class Mismatch extends Error {}

const ratio = ({ ms }, engine) => ms[engine] / ms.timepail;
const twoDigits = (value) => value.toPrecision(value < 1 ? 2 : 3);
const results = [];
let others;

for (const { make, queries } of USES) {
  const asked = Object.entries(queries).filter(([name]) => only?.includes(name) ?? true);
  if (asked.length === 0) continue;
  const data = make({ hosts, hours });
  const engines = await enginesOver(data);
  if (others === undefined) {
    others = Object.keys(engines).filter((engine) => engine !== "timepail");
    if (!others.includes("native DuckDB")) console.log("native DuckDB is left out: `npm ci --prefix bench` has not installed @duckdb/node-api\n");
    console.log(`| query | rows | timepail, ms | ${others.map((engine) => `× ${engine}`).join(" | ")} |\n|---|---|---|${others.map(() => "---|").join("")}`);
  }
  for (const [name, draw] of asked) {
    try {
      const result = await measure(name, draw, data, engines);
      results.push(result);
      console.log(`| ${name} | ${result.rows} | ${result.ms.timepail.toFixed(2)} | ${others.map((engine) => twoDigits(ratio(result, engine))).join(" | ")} |`);
    } catch (error) {
      console.error(`${error instanceof Mismatch ? "mismatch" : "error"}: ${name}: ${error.message}`);
      process.exitCode = 1;
    }
  }
  for (const engine of Object.values(engines)) await engine.close();
}

const means = Object.fromEntries((others ?? []).map((engine) => [engine, geometricMean(results.map((result) => ratio(result, engine)))]));
console.log(`| geometric mean of ${results.length} | | | ${Object.values(means).map(twoDigits).join(" | ")} |`);
if (args.json) writeFileSync(args.json, `${JSON.stringify({ hosts, hours, rounds, clock: args.clock, results, means }, null, 2)}\n`);

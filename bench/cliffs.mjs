// Pairs of shapes that return the same, or do the same work. The second should cost at most twice as much as the first. In Node, in memory, all rows folded.
// For some it also prints the time of a loop over typed arrays. Answers are compared before a time counts; only ratios within one run mean anything.
//
//   node bench/cliffs.mjs [--rounds 7] [--rows 216000] [--clock cpu] [--only text,text] [--json file]

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { filled } from "./cliffs/data.mjs";
import { expressions } from "./cliffs/expressions.mjs";
import { keys } from "./cliffs/keys.mjs";
import { ask, difference } from "./cliffs/shapes.mjs";
import { small } from "./cliffs/small.mjs";
import { stages } from "./cliffs/stages.mjs";
import { CLOCKS, median, timed, warm } from "./tsbs/compare.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    rows: { type: "string", default: "216000" },
    clock: { type: "string", default: "wall" },
    only: { type: "string" },
    json: { type: "string" },
  },
});
const RATIO_MAX = 2;
const LOOP_RATIO_MAX = 10;
const clock = CLOCKS[args.clock];
if (clock === undefined) throw new Error(`--clock is ${Object.keys(CLOCKS).join(" or ")}`);
const wanted = args.only?.toLowerCase().split(",");
const pairs = [...keys, ...expressions, ...stages, ...small].filter(({ name }) => wanted?.some((text) => name.toLowerCase().includes(text)) ?? true);
if (pairs.length === 0) throw new Error(`no pair has ${args.only} in its name`);

const { collections, series, rows, close } = await filled(Number(args.rows));

/** Median times of the two shapes and of the loop, which take turns. The first round warms up compilers and caches. */
async function measure({ first, second, same, per, loop }) {
  const shapes = { first: () => ask(collections, first), second: () => ask(collections, second), ...(loop && { loop: async () => loop(series) }) };
  const names = Object.keys(shapes);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  let answers;
  for (let round = 0; round <= Number(args.rounds); round++) {
    answers = {};
    for (const name of round % 2 ? names : names.toReversed()) {
      if (round === 0) await warm(shapes[name]);
      const { answer, ms } = await timed(shapes[name], clock);
      answers[name] = answer;
      if (round > 0) times[name].push(ms);
    }
    const found = difference(answers.first, answers.second, same);
    if (found !== undefined) throw new Mismatch(`the second shape says otherwise: ${found}`);
    const looped = loop && difference(answers.loop, answers.second, same === "all" ? "all" : "values");
    if (looped !== undefined) throw new Mismatch(`the loop says otherwise: ${looped}`);
  }
  const [firstMs, ms] = [median(times.first), median(times.second)];
  const rowsOf = (name) => (per === "rows" ? answers[name].length : 1);
  return {
    firstMs,
    ms,
    nsPerRow: (ms * 1e6) / rows,
    ratio: ms / rowsOf("second") / (firstMs / rowsOf("first")),
    ...(loop && { loopMs: median(times.loop), loopRatio: ms / median(times.loop) }),
  };
}

class Mismatch extends Error {}

const short = (value) => (value === undefined ? "" : value < 10 ? value.toPrecision(2) : value.toFixed(0));
const marked = (value, max) => (value > max ? `**${short(value)}**` : short(value));
const results = [];

console.log(`${rows} rows\n\n| second / first | first, ms | second, ms | ns a row | ratio | × loop |\n|---|---|---|---|---|---|`);
for (const pair of pairs) {
  try {
    const result = { name: pair.name, ...(await measure(pair)) };
    results.push(result);
    const { firstMs, ms, nsPerRow, ratio, loopRatio } = result;
    console.log(
      `| ${pair.name} | ${short(firstMs)} | ${short(ms)} | ${nsPerRow.toFixed(0)} | ${marked(ratio, RATIO_MAX)} | ${marked(loopRatio, LOOP_RATIO_MAX)} |`,
    );
  } catch (error) {
    console.error(`${error instanceof Mismatch ? "mismatch" : "error"}: ${pair.name}: ${error.message}`);
    process.exitCode = 1;
  }
}
await close();

const steep = results.filter(({ ratio }) => ratio > RATIO_MAX);
const slow = results.filter(({ loopRatio }) => loopRatio > LOOP_RATIO_MAX);
const looped = results.filter(({ loopRatio }) => loopRatio !== undefined);
console.log(
  `\n${steep.length} of ${results.length} pairs are above ${RATIO_MAX} ×; ${slow.length} of ${looped.length} loops are more than ${LOOP_RATIO_MAX} × as fast.`,
);
if (args.json) writeFileSync(args.json, `${JSON.stringify({ rows, rounds: Number(args.rounds), clock: args.clock, results }, null, 2)}\n`);

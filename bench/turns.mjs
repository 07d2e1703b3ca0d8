// What a page has to wait for while the engine works on its thread: the longest task, and the longest time without a frame or a timer, in
// headless Chromium. Prints a table in Markdown.
//
//   node bench/turns.mjs [--rounds 5] [--dist folder]     `--dist`: the build to measure, for a comparison with an earlier one

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { rounds: { type: "string", default: "5" }, dist: { type: "string" } } });

const results = [];
for (let round = 0; round < Number(args.rounds); round++) {
  const more = args.dist ? { "/timepail/": resolve(args.dist) } : {};
  results.push(await withPage((page) => page.evaluate(async () => (await import("./turns.js")).turns()), more));
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
console.log("| while | takes | longest task | longest wait for a message | for a timer | for a frame |\n|---|---|---|---|---|---|");
for (const [at, { what }] of results[0].entries()) {
  const of = (field) => `${median(results.map((result) => result[at][field])).toFixed(0)} ms`;
  const task = median(results.map((result) => result[at].task));
  console.log(`| ${what} | ${of("ms")} | ${task ? `${task.toFixed(0)} ms` : "under 50 ms"} | ${of("message")} | ${of("timer")} | ${of("frame")} |`);
}

// One durable measurement after the other, and a hundred at once, beside a bare put into IndexedDB, in headless Chromium.
//
//   node bench/singles.mjs [--turns 100] [--against folder] [--floor]
//
// `--against` names another build of the package, which takes turns with this one. `--floor` adds what an insert asks of IndexedDB, without timepail, and the
// same after a page has computed for 0.05 and 0.1 ms.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { turns: { type: "string", default: "100" }, against: { type: "string" }, floor: { type: "boolean" } } });
const TURN = 20;
const names = ["timepail", "bare put"];
if (args.against) names.push("the other build");
if (args.floor) names.push("by hand", "by hand, after 0.05 ms", "by hand, after 0.1 ms");

const times = await withPage(
  (page) =>
    page.evaluate(
      async ({ turns, TURN, names }) => {
        const { timepail, bare, byHand } = await import("./contenders.js");
        const { readings } = await import("./data.js");
        const makers = {
          timepail,
          "bare put": bare,
          "the other build": async (name) => timepail(name, (await import("/against/index.js")).open),
          "by hand": byHand,
          "by hand, after 0.05 ms": (name) => byHand(name, 0.05),
          "by hand, after 0.1 ms": (name) => byHand(name, 0.1),
        };
        const stores = {};
        for (const name of names) stores[name] = await makers[name](`singles-${name}`);
        const times = { one: {}, hundred: {} };
        for (const name of names) [times.one[name], times.hundred[name]] = [[], []];
        const timed = async (work) => {
          const begin = performance.now();
          await work();
          return performance.now() - begin;
        };
        // The first fifth is a warm-up.
        for (let turn = -turns / 5; turn < turns; turn++) {
          const first = (turn + turns) % names.length;
          const order = [...names.slice(first), ...names.slice(0, first)];
          for (const name of turn % 2 ? order : order.toReversed()) {
            const documents = readings(TURN, { start: Date.UTC(2026, 0, 1) + (turn + turns) * 1000 * TURN, seed: turn + turns });
            const ms = await timed(async () => {
              for (const document of documents) await stores[name].insert([document]);
            });
            if (turn >= 0) times.one[name].push(ms / TURN);
            if (turn < 0 || turn % 5 > 0) continue;
            const hundred = readings(100, { start: Date.UTC(2027, 0, 1) + turn * 100_000, seed: turn });
            times.hundred[name].push(await timed(() => Promise.all(hundred.map((document) => stores[name].insert([document])))));
          }
        }
        return times;
      },
      { turns: Number(args.turns), TURN, names },
    ),
  args.against ? { "/against/": resolve(args.against) } : {},
);

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const ratio = (values, others) => median(values.map((ms, turn) => ms / others[turn])).toFixed(2);
for (const [task, what] of [["one", "one durable measurement"], ["hundred", "a hundred at once"]]) {
  console.log(`${what}: median; median of paired ratios to a bare put`);
  for (const [name, values] of Object.entries(times[task])) {
    console.log(`  ${name.padEnd(24)}${median(values).toFixed(2).padStart(8)} ms${ratio(values, times[task]["bare put"]).padStart(8)}`);
  }
  if (args.against) console.log(`  timepail to the other build${ratio(times[task].timepail, times[task]["the other build"]).padStart(16)}`);
}

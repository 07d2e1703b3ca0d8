// One durable measurement after the other, and a hundred at once, beside a bare put into IndexedDB, in headless Chromium.
//
//   node bench/singles.mjs [--turns 100]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { turns: { type: "string", default: "100" } } });
const TURN = 20;

const times = await withPage((page) =>
  page.evaluate(
    async ({ turns, TURN }) => {
      const contenders = await import("./contenders.js");
      const { readings } = await import("./data.js");
      const names = ["timepail", "bare"];
      const stores = {};
      for (const name of names) stores[name] = await contenders[name](`singles-${name}`);
      const times = { one: {}, hundred: {} };
      for (const name of names) [times.one[name], times.hundred[name]] = [[], []];
      const timed = async (work) => {
        const begin = performance.now();
        await work();
        return performance.now() - begin;
      };
      // The first fifth is a warm-up.
      for (let turn = -turns / 5; turn < turns; turn++) {
        for (const name of turn % 2 ? names : names.toReversed()) {
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
    { turns: Number(args.turns), TURN },
  ),
);

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
for (const [task, what] of [["one", "one durable measurement"], ["hundred", "a hundred at once"]]) {
  const { timepail, bare } = times[task];
  const ratio = median(timepail.map((ms, turn) => ms / bare[turn]));
  console.log(`${what.padEnd(24)} timepail ${median(timepail).toFixed(2)} ms, bare put ${median(bare).toFixed(2)} ms, median of paired ratios ${ratio.toFixed(2)}`);
}

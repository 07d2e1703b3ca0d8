// A live query in one tab, and writes in another: how long until the result is there, and what it costs, beside Dexie's liveQuery and RxDB's `$`, in headless
// Chromium. The time is that of the main thread of the tab that follows, as the browser counts it. Only ratios within one run mean anything.
//
//   node bench/live-queries.mjs [--rows 100000] [--changes 100] [--limit 100] [--only timepail,dexie,rxdb]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";
import { bundleRxdb } from "./rxdb.mjs";

const { values: args } = parseArgs({
  options: { rows: { type: "string", default: "100000" }, changes: { type: "string", default: "100" }, limit: { type: "string", default: "100" }, only: { type: "string", default: "timepail,dexie,rxdb" } },
});
const rows = Number(args.rows);
const changes = Number(args.changes);
const names = args.only.split(",");

const TASKS = [
  { task: "the newest 100 rows of a series", kind: "newest", queries: 1, pauseMS: 50 },
  { task: "count and mean of the last hour, 36 000 rows", kind: "mean", queries: 1, pauseMS: 100 },
  { task: "100 live queries of newest rows, 10 changes a second", kind: "newest", queries: 100, pauseMS: 100 },
  { task: "100 live queries of six minutes in the past, 10 changes a second", kind: "past", queries: 100, pauseMS: 100 },
];

const at = (values, share) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const call = (page, name, ...given) => page.evaluate(async ([name, given]) => (await import("./live-queries.js"))[name](...given), [name, given]);

/** Runs all tasks with one store, in a browser of its own. */
async function run(name, folder) {
  return withPage(
    async (follower) => {
      const writer = await follower.context().newPage();
      await writer.goto(follower.url());
      await call(writer, "open", name);
      await call(writer, "fill", rows);
      await call(follower, "open", name);
      const session = await follower.context().newCDPSession(follower);
      await session.send("Performance.enable", { timeDomain: "threadTicks" });
      const spent = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
      const found = [];
      let written = rows;
      for (const { task, kind, queries, pauseMS } of TASKS) {
        await follower.bringToFront();
        await call(follower, "follow", kind, queries, rows, Number(args.limit));
        const before = await spent();
        const began = performance.now();
        const times = await call(writer, "write", written, changes, pauseMS);
        const tookMS = performance.now() - began;
        written += changes * 10;
        // The last change may still be on its way.
        const last = times.at(-1).at;
        const deadline = performance.now() + 10_000;
        while (kind !== "past" && performance.now() < deadline && !(await call(follower, "hasSeen", last))) await new Promise((resolve) => setTimeout(resolve, 100));
        const after = await spent();
        const result = await call(follower, "followed");
        const seen = new Map(result.seen);
        if (kind === "past" ? result.results > 0 : !seen.has(last)) throw new Error(`${name}, ${task}: ${result.results} results, and the last change was ${seen.has(last) ? "" : "not "}seen`);
        // A change that was first seen together with a later one arrived at that time.
        const arrivals = times.map(({ at, asked }) => {
          const first = Math.min(...[...seen].filter(([newest]) => newest >= at).map(([, when]) => when));
          return { fromAsked: first - asked };
        });
        found.push({
          task,
          commit: at(times.map(({ asked, acknowledged }) => acknowledged - asked), 0.5),
          latency: at(arrivals.map(({ fromAsked }) => fromAsked), 0.5),
          worst: at(arrivals.map(({ fromAsked }) => fromAsked), 0.95),
          results: result.results / queries,
          perChange: (after.TaskDuration - before.TaskDuration) / changes,
          share: (after.TaskDuration - before.TaskDuration) / tookMS,
        });
        process.stderr.write(`${name}: ${task}\n`);
      }
      return found;
    },
    { "/others/": folder },
  );
}

const folder = names.includes("rxdb") ? await bundleRxdb() : ".";
const found = {};
for (const name of names) found[name] = await run(name, folder);
for (const [n, { task }] of TASKS.entries()) {
  console.log(`\n${task}; ${rows.toLocaleString("en-US")} rows, ${changes} changes\n`);
  console.log("| store | commit, ms | write to result, median and 95 %, ms | results per query | main thread per change, ms | share of a core |");
  console.log("|---|---|---|---|---|---|");
  for (const name of names) {
    const { commit, latency, worst, results, perChange, share } = found[name][n];
    const times = Number.isFinite(latency) ? `${latency.toFixed(1)}, ${worst.toFixed(1)}` : "–";
    console.log(`| ${name} | ${commit.toFixed(1)} | ${times} | ${results.toFixed(0)} | ${perChange.toFixed(2)} | ${(share * 100).toFixed(1)} % |`);
  }
}

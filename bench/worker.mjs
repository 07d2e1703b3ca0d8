// The cost of a worker per call, and the work that it takes off the main thread, in headless Chromium. Prints tables in Markdown; only ratios within one run mean anything.
//
//   node bench/worker.mjs [--turns 40] [--rows 1000000]

import { parseArgs } from "node:util";
import { withPage } from "./chromium.mjs";

const { values: args } = parseArgs({ options: { turns: { type: "string", default: "40" }, rows: { type: "string", default: "1000000" } } });
const turns = Number(args.turns);
const rows = Number(args.rows);
const TURN = 50;
const PLACES = ["page", "worker"];

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Milliseconds per call, in the page and in a worker, which take turns: a command that does nothing, a durable insert, and ten thousand rows to columns. */
async function calls(page) {
  return page.evaluate(
    async ({ turns, TURN, PLACES }) => {
      const { open } = await import("timepail");
      const dbs = {};
      for (const place of PLACES) {
        const db = (dbs[place] = await open(`calls-${place}`, { worker: place === "worker" }));
        const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
        const at = Float64Array.from({ length: 10_000 }, (_, i) => 1.7e12 + i * 1000);
        await c.insertColumns({ at, x: at.map((_, i) => Math.round(Math.sin(i) * 100) / 100) }, { meta: "a" });
        await db.createCollection("singles", { timeseries: { timeField: "at" } });
      }
      let n = 0;
      const tasks = {
        ping: (db) => db.command({ ping: 1 }),
        "one durable insert": (db) => db.collection("singles").insertOne({ at: new Date(1.7e12 + n++), x: 1 }),
        "10 000 rows to columns": (db) => db.collection("c").find().sort({ at: 1 }).toColumns(),
      };
      const times = {};
      for (const [task, work] of Object.entries(tasks)) {
        times[task] = { page: [], worker: [] };
        // The first quarter is a warm-up.
        for (let turn = Math.round(-turns / 4); turn < turns; turn++) {
          for (const place of turn % 2 ? PLACES : PLACES.toReversed()) {
            const begin = performance.now();
            for (let i = 0; i < TURN; i++) await work(dbs[place]);
            if (turn >= 0) times[task][place].push((performance.now() - begin) / TURN);
          }
        }
      }
      for (const place of PLACES) await dbs[place].close();
      return times;
    },
    { turns, TURN, PLACES },
  );
}

/** Opens a database and prepares its rows, before anything is recorded. */
async function prepare(page, place) {
  await page.evaluate(
    async ({ place, rows }) => {
      const { open } = await import("timepail");
      const db = await open(`tasks-${place}`, { worker: place === "worker" });
      const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
      const commits = Array.from({ length: rows / 10_000 }, (_, commit) => {
        const at = Float64Array.from({ length: 10_000 }, (_, i) => 1.7e12 + (Math.floor(commit / 10) * 10_000 + i) * 1000);
        return [{ at, x: at.map((_, i) => Math.round(Math.sin(i + commit) * 1000) / 100), y: at.map((_, i) => i % 500) }, { meta: `m${commit % 10}` }];
      });
      globalThis.work = {
        insert: async () => {
          for (const [columns, options] of commits) await c.insertColumns(columns, options);
        },
        group: () => c.aggregate([{ $group: { _id: "$m", mean: { $avg: "$x" }, most: { $max: "$y" } } }]).toArray(),
        read: async () => {
          for (const [, { meta }] of commits.slice(0, 10)) await c.find({ m: meta }).sort({ at: 1 }).toColumns();
        },
        close: () => db.close(),
      };
    },
    { place, rows },
  );
}

/** Runs a part of `work` and resolves to its time and to the longest tasks of the main thread, in milliseconds of the clock and of the processor. */
async function traced(page, name) {
  const devtools = await page.context().newCDPSession(page);
  const events = [];
  devtools.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await devtools.send("Tracing.start", { categories: "toplevel,disabled-by-default-devtools.timeline", transferMode: "ReportEvents" });
  const ms = await page.evaluate(async (name) => {
    const begin = performance.now();
    await globalThis.work[name]();
    return performance.now() - begin;
  }, name);
  const complete = new Promise((resolve) => devtools.once("Tracing.tracingComplete", resolve));
  await devtools.send("Tracing.end");
  await complete;
  await devtools.detach();
  const main = new Set(events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = events.filter(({ name, pid, tid, dur }) => /RunTask$/.test(name) && dur && main.has(`${pid} ${tid}`));
  if (tasks.length === 0) throw new Error("the trace has no task of the main thread");
  const most = (field) => Math.max(...tasks.map((task) => task[field] ?? 0)) / 1000;
  return { ms, clock: most("dur"), cpu: most("tdur"), busy: tasks.reduce((sum, { tdur }) => sum + (tdur ?? 0), 0) / 1000 };
}

await withPage(async (page) => {
  const times = await calls(page);
  console.log("| a call | in the page | in a worker | more, median of pairs |\n|---|---|---|---|");
  for (const [task, { page, worker }] of Object.entries(times)) {
    const more = median(worker.map((ms, turn) => ms - page[turn]));
    console.log(`| ${task} | ${median(page).toFixed(3)} ms | ${median(worker).toFixed(3)} ms | ${more.toFixed(3)} ms |`);
  }
  console.log("\n| work | where | time | longest task of the main thread | its processor time | main thread busy |\n|---|---|---|---|---|---|");
  const names = { insert: `${rows} rows as columns`, group: `group ${rows} rows`, read: "all of them to columns, series by series" };
  for (const place of PLACES) {
    await prepare(page, place);
    for (const [name, what] of Object.entries(names)) {
      const { ms, clock, cpu, busy } = await traced(page, name);
      console.log(`| ${what} | ${place} | ${ms.toFixed(0)} ms | ${clock.toFixed(1)} ms | ${cpu.toFixed(1)} ms | ${busy.toFixed(0)} ms |`);
    }
    await page.evaluate(() => globalThis.work.close());
  }
});

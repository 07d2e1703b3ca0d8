// Runs in the page for `bench/turns.mjs`: how long messages, timers and frames wait while the engine works beside them.

import { open } from "/timepail/index.js";
import { readings } from "./data.js";

const ROWS = 100_000;

/** Repeats `next`, which calls back as soon as it can; gives the longest time between two calls. */
function gaps(next) {
  let last = performance.now();
  let longest = 0;
  let ends = false;
  const called = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!ends) next(called);
  };
  next(called);
  return () => {
    ends = true;
    return Math.max(longest, performance.now() - last);
  };
}

const NEXTS = {
  message: (called) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = called;
    // A little later, so that messages alone do not fill the event loop.
    setTimeout(() => port2.postMessage(0), 1);
  },
  timer: (called) => setTimeout(called, 4),
  frame: (called) => requestAnimationFrame(called),
};

/** Runs `work` and measures what waits meanwhile. */
async function measured(what, work) {
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries()));
  observer.observe({ type: "longtask" });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const ends = Object.entries(NEXTS).map(([name, next]) => [name, gaps(next)]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const begin = performance.now();
  await work();
  const ms = performance.now() - begin;
  const waits = Object.fromEntries(ends.map(([name, end]) => [name, end()]));
  await new Promise((resolve) => setTimeout(resolve, 100));
  observer.disconnect();
  // What came before is told late.
  const task = Math.max(0, ...tasks.filter(({ startTime }) => startTime > begin - 5).map(({ duration }) => duration));
  return { what, ms, task, ...waits };
}

export async function turns() {
  // The first time, the module itself is compiled.
  const warm = await open("turns-warm", { storage: "memory" });
  await warm.createCollection("c", { timeseries: { timeField: "at", metaField: "sensor" } });
  await warm.collection("c").insertMany(readings(2000, { start: 0, seed: 1 }));
  await warm.collection("c").aggregate([{ $group: { _id: "$sensor", n: { $sum: 1 } } }]).toArray();
  const results = [];
  for (const storage of ["indexeddb", "memory"]) {
    const db = await open("turns", { storage });
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "sensor" } });
    const documents = (part) => readings(ROWS, { start: Date.UTC(2026, 0, 1) + part * ROWS * 1000, seed: part });
    const first = documents(0);
    const add = async (what, work) => results.push(await measured(`${what}, ${storage}`, work));
    await add("100 000 objects go in", () => c.insertMany(first, { ordered: false }));
    await add("and are folded", () => db.flush());
    for (let part = 1; part < 10; part++) await c.insertMany(documents(part), { ordered: false });
    const pipeline = [{ $group: { _id: { sensor: "$sensor", hour: { $dateTrunc: { date: "$at", unit: "hour" } } }, mean: { $avg: "$temp" }, high: { $max: "$temp" } } }];
    await add("a million rows are grouped, right after they came", () => c.aggregate(pipeline).toArray());
    await add("900 000 rows are folded", () => db.flush());
    await add("a million rows are grouped", () => c.aggregate(pipeline).toArray());
    await add("a million rows are counted by a value", () => c.countDocuments({ temp: { $gt: 1 } }));
    await add("the newest thousand of a million by a value", () => c.find().sort({ temp: -1 }).limit(1000).toArray());
    await add("a tenth is deleted by a value", () => c.deleteMany({ temp: { $lt: 15 } }));
    await add("`validate` of all", () => db.command({ validate: "c", full: true }));
    await db.dropDatabase();
    await db.close();
  }
  return results;
}

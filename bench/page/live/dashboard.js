// A page that draws the last five minutes of twenty sensors with uPlot while measurements come in: frames, long tasks, and the cost of a picture.

import { open } from "timepail";
import uPlot from "uplot";
import { median } from "./measure.js";
import { Plant, timeseries } from "./plant.js";

const WINDOW_MS = 300_000;
const COMMIT_MS = 100;
const FLUSH_COMMITS = 10;
const COLUMNS = { projection: { _id: 0, at: 1, value: 1 } };

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const share = (values, part) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];

function plotOf(plant) {
  const holder = document.body.appendChild(document.createElement("div"));
  const style = document.head.appendChild(document.createElement("link"));
  Object.assign(style, { rel: "stylesheet", href: "/vendor/uplot/uPlot.min.css" });
  const series = plant.sensors.map(({ id }, i) => ({ label: id, stroke: `hsl(${i * 18} 70% 40%)`, points: { show: false } }));
  const plot = new uPlot({ width: 1000, height: 400, ms: 1, scales: { y: { range: [-60, 100] } }, legend: { show: false }, series: [{}, ...series] }, undefined, holder);
  return {
    draw: (data) => plot.setData(data),
    remove: () => {
      plot.destroy();
      holder.remove();
    },
  };
}

/**
 * One run: `rows` rows of history in commits as they come, then a commit of 20 rows every 100 ms and a picture every `everyMs` (0: every frame) for `seconds`.
 * `mode` says where rows are: `journals` never flushes, `buckets` flushes the history and then once a second, `drawing` queries once and then only draws, which is the
 * best that any database could do here.
 */
async function watch({ options, rows, seconds, everyMs, mode, log }) {
  const name = `dashboard-${mode}-${everyMs}`;
  const db = await open(name, { storage: "indexeddb", durability: "relaxed" });
  const points = await db.createCollection("points", { timeseries });
  const plant = new Plant(options);
  const insert = () => points.insertMany(plant.next(), { ordered: false });
  while (plant.rows < rows) await insert();
  if (mode !== "journals") await db.flush();
  const ask = async () => {
    const since = { $gt: new Date(plant.now - WINDOW_MS) };
    const found = await Promise.all(plant.sensors.map(({ id }) => points.find({ "sensor.id": id, at: since }, COLUMNS).sort({ at: 1 }).toColumns()));
    // A commit has a row per sensor; a commit between two of these finds is in some of them only.
    const length = Math.min(...found.map(({ at }) => at.length));
    return [found[0].at.subarray(0, length), ...found.map(({ value }) => value.subarray(0, length))];
  };
  const plot = plotOf(plant);
  const first = await ask();
  plot.draw(first);
  await frame();

  const longTasks = [];
  const observer = new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)));
  observer.observe({ type: "longtask" });
  let isOver = false;
  const [frames, asked, drawn, inserted] = [[], [], [], []];
  const begin = performance.now();
  const counting = (async () => {
    for (let last = await frame(); !isOver; ) {
      const now = await frame();
      frames.push(now - last);
      last = now;
    }
  })();
  const writing = (async () => {
    for (let n = 1; !isOver; n++) {
      const start = performance.now();
      await insert();
      inserted.push(performance.now() - start);
      if (mode === "buckets" && n % FLUSH_COMMITS === 0) await db.flush();
      await pause(Math.max(0, begin + n * COMMIT_MS - performance.now()));
    }
  })();
  while (performance.now() - begin < seconds * 1000) {
    const start = performance.now();
    const data = mode === "drawing" ? first : await ask();
    const answered = performance.now();
    plot.draw(data);
    await frame(); // uPlot draws in a microtask of setData
    asked.push(answered - start);
    drawn.push(performance.now() - answered);
    if (everyMs > 0) await pause(Math.max(0, start + everyMs - performance.now()));
  }
  isOver = true;
  const ms = performance.now() - begin;
  await Promise.all([counting, writing]);
  await pause(0);
  observer.disconnect();
  plot.remove();
  await db.close();
  indexedDB.deleteDatabase(`timepail:${name}`);
  log(`dashboard: ${mode}, ${everyMs === 0 ? "every frame" : `every ${everyMs} ms`}`);
  return {
    mode,
    everyMs,
    framesPerSecond: (frames.length / ms) * 1000,
    longestFrame: Math.max(...frames),
    picturesPerSecond: (asked.length / ms) * 1000,
    ask: median(asked),
    askMost: share(asked, 0.95),
    insert: median(inserted),
    commitsPerSecond: (inserted.length / ms) * 1000,
    longTasks: longTasks.length,
    longTaskMs: longTasks.reduce((a, b) => a + b, 0),
    longestTask: Math.max(0, ...longTasks),
  };
}

export async function dashboard(order) {
  const results = [];
  for (const everyMs of [0, 250]) for (const mode of ["journals", "buckets", "drawing"]) results.push(await watch({ ...order, everyMs, mode }));
  return results;
}

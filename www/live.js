// A simulated sensor that writes while it runs, and a chart that follows the writes of this tab and others.

import { show } from "./collection.js";
import { known } from "./discover.js";
import { inTurn, showError } from "./feedback.js";
import { duration, number } from "./format.js";
import { liveChart } from "./live-chart.js";
import { longTasks } from "./long-tasks.js";
import { showStorage } from "./storage.js";
import { $, workspace } from "./workspace.js";

const NAME = "live";
const TABS_MAX = 5;
const TICK_MS = 100;
const HOUR_SECONDS = 3600;
const options = { timeseries: { timeField: "at", metaField: "tab", granularity: "seconds" }, expireAfterSeconds: HOUR_SECONDS };

known[NAME] = {
  title: "Live",
  about: "Measurements of simulated sensors, one per tab. They are deleted after an hour.",
  cure: "Press Start above to see it here",
  timeseries: options.timeseries,
  fields: { load: "%", temperature: "°C" },
};

/** While this tab writes: `{ tab, release, timer, written }`. */
let running;
let chart;

async function start() {
  if (running) return; // pressed twice
  const { tab, release } = await takeNumber();
  const { db } = workspace;
  const present = await db.listCollections({ name: NAME }).toArray();
  if (present.length === 0) {
    await db.createCollection(NAME, options);
    inTurn(() => show());
  }
  running = { tab, release, written: 0, last: Date.now(), drift: 0 };
  running.timer = setInterval(tick, TICK_MS);
  showState();
}

/** Reserves a number that no other tab has while this one runs. */
function takeNumber() {
  const take = (n, given) =>
    navigator.locks.request(`timepail demo tab ${n}`, { ifAvailable: true }, (lock) => {
      if (!lock && n < TABS_MAX) return void take(n + 1, given);
      return new Promise((release) => given({ tab: `tab ${n}`, release }));
    });
  if (!navigator.locks) return { tab: "tab 1", release: () => {} };
  return new Promise((given) => take(1, given));
}

/** Inserts the measurements that are due since the last tick. A tab in the background ticks less often. */
async function tick() {
  const now = Date.now();
  const step = 1000 / Number($("live-rate").value);
  const count = Math.floor((now - running.last) / step);
  if (count === 0) return;
  const documents = Array.from({ length: count }, (_, i) => measurement(running.last + (i + 1) * step));
  running.last += count * step;
  const mine = running;
  try {
    mine.written += (await workspace.db.collection(NAME).insertMany(documents, { ordered: false })).insertedCount;
  } catch (error) {
    if (running === mine) stop();
    if (error.codeName !== "NamespaceNotFound") showError(error); // Somebody has dropped it.
  }
}

function measurement(time) {
  const phase = Number(running.tab.slice(4));
  running.drift += (Math.random() - 0.5) * 3 - running.drift * 0.05;
  const load = Math.min(100, Math.max(0, 50 + 30 * Math.sin(time / (4000 + 1500 * phase) + phase) + running.drift));
  return { at: new Date(time), tab: running.tab, load: Math.round(load * 10) / 10, temperature: Math.round((30 + load * 0.4) * 10) / 10 };
}

function stop() {
  clearInterval(running.timer);
  running.release();
  running = undefined;
  showState();
  inTurn(() => (workspace.chosen === NAME ? show() : showStorage()));
}

function showState() {
  $("live-start").textContent = running ? "Stop" : "Start";
  $("live-start").setAttribute("aria-pressed", String(Boolean(running)));
  if (!chart) $("live-state").textContent = "Start it in two tabs. Each tab draws what both write.";
  chart?.changed();
}

function hear({ operation, collection }) {
  if (operation === "dropDatabase" || (operation === "drop" && collection === NAME)) {
    if (running) stop();
    chart?.stop();
    chart = undefined;
    $("live-tasks").textContent = "";
    showState();
  } else if (collection === NAME && operation === "insert") {
    chart ??= liveChart($("live-chart"), workspace.db.collection(NAME), showPicture, showError);
  }
}

function showPicture({ rows, series, results, mode }) {
  const others = series.length > 1 ? ` of ${series.length} tabs` : "";
  const own = running ? `; ${number(running.written)} written here as “${running.tab}”` : "";
  $("live-state").textContent = `${number(rows)} points${others} in the last minute${own}`;
  const way = { newRows: "from the new rows", fresh: "by running the query again" }[mode];
  const { count, longest } = longTasks;
  const tasks = count === undefined ? "" : ` Tasks of this page above 50 ms: ${number(count)}${count > 0 ? `, the longest ${duration(longest)}` : ""}.`;
  $("live-tasks").textContent = `${number(results)} results of the live query${way ? `, brought up to date ${way}` : ""}.${tasks}`;
}

export function setUpLive() {
  $("live-start").addEventListener("click", () => (running ? stop() : inTurn(start)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart?.restyle());
}

/** Subscribes to the changes of this tab and of other tabs. */
export const followLive = () => workspace.db.on("change", hear);

// A chart of the last minute: a live query of the measurements since a fixed time, drawn at most once per frame.

import uPlot from "uplot";
import { optionsOf } from "./chart.js";
import { linesOf } from "./lines.js";

const WINDOW_MS = 60_000;
/** The live query begins at a fixed time. Once it covers this much more than the chart shows, a new one replaces it. */
const SURPLUS_MS = 15_000;
/** The chart shows at least this much time, also while the measurements cover less. */
const SHORTEST_MS = 10_000;
const FIELD = "load";
const timeField = "at";
const metaField = "tab";

/** Calls `onDrawn({ rows, series, results, mode })` after each drawing. `changed` requests one, `stop` removes the chart, `onError` gets the error that ended the query. */
export function liveChart(holder, collection, onDrawn, onError) {
  let plot;
  let names = "";
  let isDue = false;
  let isStopped = false;
  let newest = {};
  let results = 0;
  let mode;
  let since;
  let unsubscribe;

  function follow() {
    unsubscribe?.();
    since = Date.now() - WINDOW_MS;
    const live = collection
      .find({ [timeField]: { $gte: new Date(since) } })
      .sort({ [timeField]: 1 })
      .live({ columns: true });
    unsubscribe = live.subscribe((columns) => {
      newest = columns;
      results++;
      changed();
    }, onError);
    live.explain().then((told) => (mode = told.mode), () => {});
  }

  function changed() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(draw);
  }

  function draw() {
    isDue = false;
    const columns = newest;
    const end = Date.now();
    const from = columns[timeField]?.findIndex((time) => time >= end - WINDOW_MS) ?? -1;
    const rows = from < 0 ? 0 : columns[timeField].length - from;
    if (rows === 0 || isStopped) return;
    if (end - since > WINDOW_MS + SURPLUS_MS) follow();
    const series = [...new Set(columns[metaField])].sort().map((label, i) => ({ label, color: colorOf(label, i) }));
    const { times, lines } = linesOf(columns, { timeField, metaField, names: [FIELD], series });
    const data = [times, ...lines.map(([line]) => line)];
    holder.hidden = false;
    if (String(series.map(({ label }) => label)) !== names || plot === undefined) {
      names = String(series.map(({ label }) => label));
      build(series, data);
    } else plot.setData(data, false);
    plot.setScale("x", { min: Math.max(end - WINDOW_MS, Math.min(times[0], end - SHORTEST_MS)), max: end });
    onDrawn({ rows, series, results, mode });
  }

  function build(series, data) {
    plot?.destroy();
    const panel = document.createElement("figure");
    const caption = panel.appendChild(document.createElement("figcaption"));
    caption.append(Object.assign(document.createElement("b"), { textContent: FIELD }), " %");
    panel.setAttribute("role", "group");
    panel.setAttribute("aria-label", `Chart of the last minute, ${series.map(({ label }) => label).join(", ")}`);
    holder.replaceChildren(panel);
    const options = optionsOf(series, panel, caption, { isLast: true, panels: 2, lineWidth: 1.5, precision: "second" });
    const scales = { x: { time: true, auto: false }, y: { range: [0, 100] } };
    plot = new uPlot({ ...options, scales, cursor: { ...options.cursor, sync: undefined } }, data, panel);
  }

  const resize = new ResizeObserver(() => {
    const width = holder.firstElementChild?.clientWidth;
    if (plot && width && width !== plot.width) plot.setSize({ width, height: plot.height });
  });
  resize.observe(holder);

  /** Redraws the chart in the current colours. */
  function restyle() {
    plot?.destroy();
    plot = undefined;
    changed();
  }

  function stop() {
    isStopped = true;
    unsubscribe();
    resize.disconnect();
    plot?.destroy();
    holder.replaceChildren();
    holder.hidden = true;
  }

  follow();
  return { changed, restyle, stop };
}

/** The number at the end of a name chooses its colour, so that a tab has the same one everywhere. */
const colorOf = (label, i) => ((Number(/\d+$/.exec(label)?.[0] ?? i + 1) - 1) % 5) + 1;

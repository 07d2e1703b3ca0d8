// Draws columns with uPlot: one panel a field, one line a series, one crosshair through all of them.

import uPlot from "uplot";
import { moment, number } from "./format.js";

const POINTS_MAX = 20_000;
const DAY_MS = 86_400_000;
const holder = document.getElementById("charts");
let plots = [];

/**
 * Draws what `toColumns` gave. Returns the stride: 1 when every measurement is drawn, n when every n-th is.
 *
 * `columns` is sorted by time; `series` names the lines; `fields` maps each field to its unit.
 */
export function draw(columns, { timeField, metaField, series, fields }) {
  clear();
  const names = Object.keys(fields);
  const owned = rowsBySeries(columns[metaField], series);
  const longest = Math.max(...owned.map((rows) => rows.length));
  const stride = Math.max(1, Math.ceil(longest / POINTS_MAX));
  const drawn = owned.map((rows) => rows.filter((_, i) => i % stride === 0));
  // uPlot wants one time axis for all lines: join fills the gaps of those that have no measurement at a time.
  const wanted = [timeField, ...names].map((name) => columns[name] ?? []);
  const [times, ...lines] = uPlot.join(drawn.map((rows) => wanted.map((column) => rows.map((row) => column[row]))));
  plots = names.map((name, i) => {
    const panel = holder.appendChild(document.createElement("figure"));
    const caption = panel.appendChild(document.createElement("figcaption"));
    caption.append(Object.assign(document.createElement("b"), { textContent: name }), ` ${fields[name]}`);
    panel.setAttribute("role", "group");
    panel.setAttribute("aria-label", `Chart of ${name} in ${fields[name]}, ${series.join(", ")}`);
    const data = [times, ...series.map((_, line) => lines[line * names.length + i])];
    const layout = { isLast: i === names.length - 1, panels: names.length, lineWidth: times.length > 2000 ? 1 : 1.5 };
    return new uPlot(options(series, panel, caption, layout), data, panel);
  });
  return stride;
}

/** Removes the charts. */
export function clear() {
  for (const plot of plots) plot.destroy();
  plots = [];
  holder.replaceChildren();
}

/** For each series the numbers of its rows. */
function rowsBySeries(owners, series) {
  const rows = new Map(series.map((name) => [name, []]));
  for (let row = 0; row < owners.length; row++) rows.get(owners[row])?.push(row);
  return [...rows.values()];
}

function options(series, panel, caption, { isLast, panels, lineWidth }) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const font = `12px ${style.getPropertyValue("--sans")}`;
  const axis = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font };
  return {
    ...sizeOf(panel, isLast, panels),
    ms: 1,
    padding: [6, 18, isLast ? 0 : 8, 0],
    tzDate: (ms) => uPlot.tzDate(new Date(ms), "UTC"),
    cursor: { sync: { key: "demo" }, points: { size: 7 } },
    legend: { mount: (_, legend) => caption.append(legend) },
    axes: [
      { ...axis, show: isLast, size: 32, space: 72, values: timeLabels },
      { ...axis, size: 58, space: 28 },
    ],
    series: [
      { label: "UTC", value: (_, time) => (time == null ? "" : moment(time)) },
      ...series.map((label, i) => ({
        label,
        stroke: color(`series-${i + 1}`),
        width: lineWidth,
        spanGaps: true,
        points: { show: false },
        value: (_, value) => (value == null ? "–" : number(value, 2)),
      })),
    ],
  };
}

/** One panel gets the whole height, several share it; the last one also carries the time axis. */
function sizeOf(panel, isLast, panels) {
  return { width: panel.clientWidth, height: (panels === 1 ? 330 : 128) + (isLast ? 32 : 14) };
}

/** Labels of the time axis: as coarse as the distance between them allows. */
function timeLabels(_, times, __, ___, step) {
  return times.map((time, i) => {
    const date = new Date(time);
    if (step >= 300 * DAY_MS) return moment(time, "year");
    if (step >= 25 * DAY_MS) return i === 0 || date.getUTCMonth() === 0 ? `${moment(time, "month")}\n${moment(time, "year")}` : moment(time, "month");
    if (step >= DAY_MS || date.getTime() % DAY_MS === 0) return moment(time, "day");
    return moment(time, "clock");
  });
}

new ResizeObserver(() => {
  for (const [i, plot] of plots.entries()) {
    const panel = holder.children[i];
    if (panel.clientWidth !== plot.width) plot.setSize(sizeOf(panel, i === plots.length - 1, plots.length));
  }
}).observe(holder);

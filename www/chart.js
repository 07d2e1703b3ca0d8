// Draws columns with uPlot: one panel per field, one line per series, one crosshair through all of them.

import uPlot from "uplot";
import { moment, number } from "./format.js";
import { linesOf } from "./lines.js";
import { high, low } from "./views.js";

const DAY_MS = 86_400_000;
const holder = document.getElementById("charts");
let plots = [];

/**
 * Draws results of `toColumns`: `panels` has the columns of each field of the dataset. Returns the stride: 1 if every
 * measurement is drawn, n if every n-th is.
 *
 * `series` names the lines and their colours; with `hasBand`, each has a band from its lowest to its highest values.
 */
export function draw(panels, { dataset, series, hasBand }) {
  clear();
  const fields = Object.entries(dataset.fields);
  let stride = 1;
  plots = fields.map(([name, unit], i) => {
    const names = hasBand ? [name, low(name), high(name)] : [name];
    const made = linesOf(panels[i], { ...dataset.timeseries, names, series });
    stride = Math.max(stride, made.stride);
    const panel = holder.appendChild(document.createElement("figure"));
    const caption = panel.appendChild(document.createElement("figcaption"));
    caption.append(Object.assign(document.createElement("b"), { textContent: name }), ` ${unit}`);
    panel.setAttribute("role", "group");
    panel.setAttribute("aria-label", `Chart of ${name}${unit && ` in ${unit}`}, ${series.map(({ label }) => label).join(", ")}`);
    const data = [made.times, ...made.lines.map(([line]) => line), ...made.lines.flatMap((lines) => lines.slice(1))];
    const layout = { isLast: i === fields.length - 1, panels: fields.length, lineWidth: made.times.length > 2000 ? 1 : 1.5, hasBand };
    return new uPlot(optionsOf(series, panel, caption, layout), data, panel);
  });
  return stride;
}

/** Removes the charts. */
export function clear() {
  for (const plot of plots) plot.destroy();
  plots = [];
  holder.replaceChildren();
}

/** Options of uPlot for a panel: axes, colours and a legend within `caption`. */
export function optionsOf(series, panel, caption, { isLast, panels, lineWidth, hasBand, precision = "minute" }) {
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
      { label: "UTC", value: (_, time) => (time == null ? "" : moment(time, precision)) },
      ...series.map((line) => ({
        label: line.label,
        stroke: color(`series-${line.color}`),
        width: lineWidth,
        spanGaps: true,
        points: { show: false },
        value: (_, value) => (value == null ? "–" : number(value, 2)),
      })),
      ...(hasBand ? series.flatMap(() => [bound, bound]) : []),
    ],
    bands: hasBand ? series.map((line, i) => bandOf(i, series.length, color(`series-${line.color}`))) : [],
  };
}

/** A bound of a band. It has no line, and does not appear in the legend. */
const bound = { class: "hidden", width: 0, spanGaps: true, points: { show: false } };

function bandOf(i, count, color) {
  const least = 1 + count + 2 * i;
  return { series: [least + 1, least], fill: `color-mix(in srgb, ${color} 18%, transparent)` };
}

/** One panel gets the whole height, several share it; the last one also carries the time axis. */
function sizeOf(panel, isLast, panels) {
  return { width: panel.clientWidth, height: (panels === 1 ? 330 : 128) + (isLast ? 32 : 14) };
}

/** Labels of the time axis. The distance between them decides how precise they are. */
function timeLabels(_, times, __, ___, step) {
  return times.map((time, i) => {
    const date = new Date(time);
    if (step >= 300 * DAY_MS) return moment(time, "year");
    if (step >= 25 * DAY_MS) return i === 0 || date.getUTCMonth() === 0 ? `${moment(time, "month")}\n${moment(time, "year")}` : moment(time, "month");
    if (step >= DAY_MS || date.getTime() % DAY_MS === 0) return moment(time, "day");
    return moment(time, step < 60_000 ? "seconds" : "clock");
  });
}

new ResizeObserver(() => {
  for (const [i, plot] of plots.entries()) {
    const panel = holder.children[i];
    if (panel.clientWidth !== plot.width) plot.setSize(sizeOf(panel, i === plots.length - 1, plots.length));
  }
}).observe(holder);

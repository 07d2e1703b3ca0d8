// The range query: reads the form, runs the query, shows the rows, the time and the code, and draws the columns.

import { clear, draw } from "./chart.js";
import { duration, isoDay, moment, number, showCode } from "./format.js";
import { views } from "./views.js";
import { $, element } from "./workspace.js";

const DAY_MS = 86_400_000;
const COLORS = 5;

/** Fills the form for a dataset. `extent` is the result of `extentOf`. */
export function prepareQuery({ series, drawn = series.length }, extent, days = "all") {
  const boxes = series.map((name, i) => {
    const box = element("input", { type: "checkbox", name: "series", value: name, checked: i < drawn });
    const label = element("label", {}, box, element("span", { textContent: name }));
    label.style.setProperty("--swatch", `var(--series-${colorOf(i)})`);
    return label;
  });
  $("series").replaceChildren($("series").querySelector("legend"), ...boxes);
  chooseRange(extent, days);
}

const colorOf = (i) => (i % COLORS) + 1;

/** Sets the dates to the last `days` days of the stored measurements, or to all of them. */
export function chooseRange(extent, days) {
  for (const button of document.querySelectorAll("[data-days]")) button.setAttribute("aria-pressed", button.dataset.days === String(days));
  $("to").value = extent ? isoDay(extent.last) : "";
  $("from").value = extent ? isoDay(days === "all" ? extent.first : new Date(Math.max(extent.first, extent.last - (days - 1) * DAY_MS))) : "";
}

/** Times of the oldest and of the newest measurement, or `null` when there is none. */
export async function extentOf(collection, { timeField }) {
  const projection = { [timeField]: 1 };
  const first = await collection.findOne({}, { sort: { [timeField]: 1 }, projection });
  const last = await collection.findOne({}, { sort: { [timeField]: -1 }, projection });
  return first && { first: first[timeField], last: last[timeField] };
}

/** Runs the query that the form describes. Resolves to `{ rows, ms }`. */
export async function runQuery(collection, dataset, extent) {
  const { timeField } = dataset.timeseries;
  const chosen = [...$("series").querySelectorAll(":checked")].map((box) => box.value);
  if (chosen.length === 0) throw new Error("Choose at least one series.");
  const mode = document.querySelector("[name=mode]:checked").value;
  const filter = filterOf(dataset, chosen, extent);
  const view = views[mode]({ collection, filter, dataset, spanMs: spanOf(extent) });

  const start = performance.now();
  const { rows, panels, note } = await view.read();
  const ms = performance.now() - start;

  showCode($("query-code"), view.code);
  $("to-console").value = view.sample ?? view.code;
  if (rows === 0) {
    clear();
    $("result").textContent = `No rows in ${duration(ms)}`;
    $("result-note").textContent = "There are no measurements of these series in this range.";
    return { rows, ms };
  }
  const series = dataset.series.map((label, i) => ({ label, color: colorOf(i) })).filter(({ label }) => chosen.includes(label));
  const stride = draw(panels, { dataset, series, hasBand: mode === "means" });
  const times = panels.flatMap((columns) => [columns[timeField].at(0), columns[timeField].at(-1)]);
  const notes = [`${moment(Math.min(...times))} to ${moment(Math.max(...times))}`, note, stride > 1 && `one point in ${stride} is drawn`];
  $("result").textContent = `${number(rows)} rows in ${duration(ms)}`;
  $("result-note").textContent = notes.filter(Boolean).join("; ");
  return { rows, ms };
}

/** The length of the chosen range, limited to the time with measurements. */
function spanOf(extent) {
  return Math.min($("to").valueAsNumber + DAY_MS, extent.last) - Math.max($("from").valueAsNumber, extent.first);
}

/** The filter for the chosen series and dates, without conditions that every measurement meets. */
function filterOf({ series, values, hasMore, timeseries }, chosen, extent) {
  const filter = {};
  const wanted = chosen.map((label) => (values ? values.get(label) : label) ?? null);
  if (timeseries.metaField && chosen.length === 1) filter[timeseries.metaField] = wanted[0];
  else if (timeseries.metaField && (chosen.length < series.length || hasMore)) filter[timeseries.metaField] = { $in: wanted };
  const from = $("from").valueAsDate;
  const end = new Date($("to").valueAsNumber + DAY_MS);
  const range = {};
  if (from > extent.first) range.$gte = from;
  if (end <= extent.last) range.$lt = end;
  if (Object.keys(range).length > 0) filter[timeseries.timeField] = range;
  return filter;
}

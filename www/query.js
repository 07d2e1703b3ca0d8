// The range query: reads the form, runs find(), shows the rows, the time and the code, and draws the columns.

import { clear, draw } from "./chart.js";
import { duration, isoDay, moment, number, showCode, toSource } from "./format.js";

const DAY_MS = 86_400_000;
const $ = (id) => document.getElementById(id);

/** Fills the form for a dataset. `extent` is what `extentOf` gave. */
export function prepareQuery({ series }, extent, days = "all") {
  const boxes = series.map((name, i) => {
    const label = document.createElement("label");
    label.style.setProperty("--swatch", `var(--series-${i + 1})`);
    label.append(Object.assign(document.createElement("input"), { type: "checkbox", name: "series", value: name, checked: true }), name);
    return label;
  });
  $("series").replaceChildren($("series").querySelector("legend"), ...boxes);
  chooseRange(extent, days);
}

/** Sets the dates to the last `days` days of what is stored, or to all of it. */
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
  const { timeField, metaField } = dataset.timeseries;
  const chosen = [...$("series").querySelectorAll(":checked")].map((box) => box.value);
  if (chosen.length === 0) throw new Error("Choose at least one series.");
  const filter = filterOf(dataset, chosen, extent);
  const sort = { [timeField]: 1 };

  const start = performance.now();
  const columns = await collection.find(filter).sort(sort).toColumns();
  const ms = performance.now() - start;

  // A field that no row has is missing, so without rows there are no columns at all.
  const rows = columns[timeField]?.length ?? 0;
  const code = [
    "const columns = await db",
    `  .collection("${collection.collectionName}")`,
    `  .find(${toSource(filter)})`,
    `  .sort(${toSource(sort)})`,
    "  .toColumns();",
  ];
  showCode($("query-code"), code.join("\n"));
  if (rows === 0) {
    clear();
    $("result").textContent = `No rows in ${duration(ms)}`;
    $("result-note").textContent = "There are no measurements of these series in this range.";
    return { rows, ms };
  }
  const stride = draw(columns, { timeField, metaField, series: dataset.series.filter((name) => chosen.includes(name)), fields: dataset.fields });
  const [from, to] = [columns[timeField][0], columns[timeField][rows - 1]];
  $("result").textContent = `${number(rows)} rows in ${duration(ms)}`;
  $("result-note").textContent = `${moment(from)} to ${moment(to)}${stride > 1 ? `; one point in ${stride} is drawn` : ""}`;
  return { rows, ms };
}

/** The filter for the chosen series and dates; what would not narrow anything is left out. */
function filterOf({ series, timeseries }, chosen, extent) {
  const filter = {};
  if (chosen.length === 1) filter[timeseries.metaField] = chosen[0];
  else if (chosen.length < series.length) filter[timeseries.metaField] = { $in: chosen };
  const from = $("from").valueAsDate;
  const end = new Date($("to").valueAsNumber + DAY_MS);
  const range = {};
  if (from > extent.first) range.$gte = from;
  if (end <= extent.last) range.$lt = end;
  if (Object.keys(range).length > 0) filter[timeseries.timeField] = range;
  return filter;
}

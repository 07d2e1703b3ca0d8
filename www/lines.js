// Converts columns to the lines of a chart: one per series, thinned to what a chart can show, on one time axis.

import uPlot from "uplot";
import { labelOf } from "./discover.js";

const POINTS_MAX = 20_000;

/**
 * `columns` is sorted by time within each series. Returns `{ times, lines, stride }`: for each series its lines, one for each of
 * `names`, aligned with `times`. The stride is 1 if every row is included, n if every n-th is.
 */
export function linesOf(columns, { timeField, metaField, names, series }) {
  const owned = rowsBySeries(columns[metaField], series, columns[timeField]?.length ?? 0);
  const longest = Math.max(...owned.map((rows) => rows.length));
  const stride = Math.max(1, Math.ceil(longest / POINTS_MAX));
  const drawn = owned.map((rows) => rows.filter((_, i) => i % stride === 0));
  // uPlot wants one time axis for all lines: join fills the gaps of those that have no measurement at a time.
  const wanted = [timeField, ...names].map((name) => columns[name] ?? []);
  const [times, ...joined] = uPlot.join(drawn.map((rows) => wanted.map((column) => rows.map((row) => valueOf(column[row])))));
  return { times, lines: series.map((_, i) => joined.slice(i * names.length, (i + 1) * names.length)), stride };
}

/** The value as a number, or `null` if it is missing, of another type, or NaN. */
function valueOf(value) {
  if (typeof value === "bigint" || value?._bsontype === "Long") return Number(value);
  return typeof value === "number" && !Number.isNaN(value) ? value : null;
}

/** The row numbers of each series. Without metadata, all rows belong to the only series. */
function rowsBySeries(owners, series, count) {
  const rows = new Map(series.map(({ label }) => [label, []]));
  const only = owners === undefined ? rows.get(series[0].label) : undefined;
  for (let row = 0; row < count; row++) (only ?? rows.get(labelOf(owners[row])))?.push(row);
  return [...rows.values()];
}

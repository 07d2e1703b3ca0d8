// Builds pipelines for charts and tables: the newest measurement of each series, and values by windows of time.

import { checkNames } from "./options.js";
import type { Document } from "./types.js";

/** Options of {@link latest}. */
export interface LatestOptions {
  /** The timeField. */
  time: string;
  /** The path that identifies a series: the metaField, or a path below it. Default: there is one series. */
  by?: string;
}

/** Options of {@link window}. */
export interface WindowOptions extends LatestOptions {
  /** The length of a window: a unit such as `"hour"` or a number of them such as `"15 minutes"`. */
  every: string;
  /** What to compute: the fields whose mean is wanted, or accumulators by name. */
  values: readonly string[] | Readonly<Record<string, Document>>;
  /** The time zone in which days, weeks and longer windows begin. Default UTC. */
  timezone?: string;
}

/**
 * Writes the pipeline for the newest measurement of each series.
 *
 * @example
 * ```ts
 * const newest = await weather.aggregate(latest({ time: "at", by: "station" })).toArray();
 * ```
 */
export function latest(options: LatestOptions): Document[] {
  checkNames(options, ["time", "by"]);
  const { time, by } = checked(options);
  return [
    { $group: { _id: by === undefined ? null : `$${by}`, newest: { $top: { sortBy: { [time]: -1 }, output: "$$ROOT" } } } },
    { $replaceWith: "$newest" },
  ];
}

/**
 * Writes the pipeline for values by windows of time, in the order of time. A document has the start of its window under the name of the timeField, the series under
 * the last name of the path `by`, and the values.
 *
 * @example
 * ```ts
 * const { at, temp } = await weather.aggregate(window({ time: "at", every: "hour", values: ["temp"] })).toColumns();
 * ```
 */
export function window(options: WindowOptions): Document[] {
  checkNames(options, ["time", "by", "every", "values", "timezone"]);
  const { time, by } = checked(options);
  const { every, values, timezone } = options;
  const [, size = "1", unit] = /^(?:(\d+) )?(millisecond|second|minute|hour|day|week|month|quarter|year)s?$/.exec(every) ?? [];
  if (unit === undefined) throw new TypeError(`every must be such as "hour" or "15 minutes", not ${JSON.stringify(every)}`);
  const start = { $dateTrunc: { date: `$${time}`, unit, ...(size !== "1" && { binSize: Number(size) }), ...(timezone !== undefined && { timezone }) } };
  const accumulators = Array.isArray(values) ? Object.fromEntries(values.map((field: string) => [nameOf(field), { $avg: `$${field}` }])) : (values as Document);
  const series = by === undefined ? undefined : nameOf(by);
  const shown: Document = series === undefined ? { [time]: "$_id" } : { [time]: "$_id.start", [series]: "$_id.series" };
  for (const name of Object.keys(accumulators)) {
    if (name in shown) throw new TypeError(`The value ${JSON.stringify(name)} is named like the time or the series`);
    shown[name] = 1;
  }
  return [
    { $group: { _id: series === undefined ? start : { start, series: `$${by}` }, ...accumulators } },
    { $sort: { [series === undefined ? "_id" : "_id.start"]: 1 } },
    { $project: { _id: 0, ...shown } },
  ];
}

function checked<T extends LatestOptions>(options: T): T {
  for (const name of ["time", "by"] as const) {
    const path: unknown = options[name];
    if (typeof path === "string" && path !== "" && !path.startsWith("$")) continue;
    if (path !== undefined || name === "time") throw new TypeError(`${name} must be the name of a field, without a $`);
  }
  return options;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

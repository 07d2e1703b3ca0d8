// Describes the collections that the page has not created itself, from their stored data.

import { datasets, isBuiltIn } from "./datasets.js";
import { number } from "./format.js";

const SERIES_MAX = 12;
const DRAWN_MAX = 5;
const FIELDS_MAX = 4;
const inOrder = new Intl.Collator("en", { numeric: true });

/** Brings `datasets` up to date with the database: the visitor's collections follow those of the page. */
export async function discover(db) {
  const listed = await db.listCollections({ type: "timeseries" }).toArray();
  const present = new Set(listed.map(({ name }) => name));
  for (const name of Object.keys(datasets)) if (!isBuiltIn(name) && !present.has(name)) delete datasets[name];
  for (const { name, options } of listed) {
    if (!isBuiltIn(name)) datasets[name] = { ...(await describe(db, name, options)), ...known[name] };
  }
}

/** The descriptions of collections that the page creates on demand. */
export const known = {};

async function describe(db, name, { timeseries, dedupe }) {
  const { timeField, metaField } = timeseries;
  const values = metaField ? await db.collection(name).distinct(metaField) : [];
  const byLabel = new Map(values.map((value) => [labelOf(value), value]).sort(([a], [b]) => inOrder.compare(a, b)));
  if (byLabel.size === 0) byLabel.set(metaField ? "no series" : name, undefined);
  const shown = [...byLabel].slice(0, SERIES_MAX);
  const fields = await numericFields(db, name, timeField);
  const more = byLabel.size > SERIES_MAX ? `; the first ${SERIES_MAX} of ${number(byLabel.size)} series` : "";
  const parts = [`Time in “${timeField}”`, metaField && `series by “${metaField}”`, fields.length > 0 && `${fields.join(", ")} drawn${more}`];
  return {
    own: true,
    title: name,
    about: `A collection of yours. ${parts.filter(Boolean).join(", ")}.`,
    cure: "Insert measurements, or drop it below",
    timeseries,
    dedupe,
    series: shown.map(([label]) => label),
    values: new Map(shown),
    hasMore: byLabel.size > SERIES_MAX,
    drawn: DRAWN_MAX,
    fields: Object.fromEntries(fields.map((field) => [field, ""])),
  };
}

/** Fields whose smallest value is a number in one of the first buckets. */
async function numericFields(db, name, timeField) {
  const buckets = await db.collection(`system.buckets.${name}`).find({}, { projection: { "control.min": 1 }, limit: 20 }).toArray();
  const names = new Set();
  for (const { control } of buckets) {
    for (const [field, value] of Object.entries(control.min ?? {})) {
      if (field !== timeField && field !== "_id" && (typeof value === "number" || value?._bsontype === "Long")) names.add(field);
    }
  }
  return [...names].slice(0, FIELDS_MAX);
}

/** The name of a series: its metadata as text. */
export function labelOf(value) {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "none" : JSON.stringify(value).replace(/"/g, "");
}

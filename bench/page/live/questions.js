// The queries of a dashboard, and the comparison of two answers.

import { SPIKE } from "./plant.js";

const MINUTE_MS = 60_000;
const since = (plant, ms) => ({ at: { $gt: new Date(plant.now - ms) } });
const first = (field) => ({ $first: `$${field}` });
const LAST = { at: first("at"), value: first("value"), pressure: first("pressure"), status: first("status") };
const OUTPUT = { at: "$at", value: "$value", pressure: "$pressure", status: "$status" };
const minute = { $dateTrunc: { date: "$at", unit: "minute" } };
const labelled = { projection: { _id: 0, at: 1, "sensor.id": 1, value: 1 } };
const plotted = { projection: { _id: 0, at: 1, value: 1 } };
const each = (plant, ask) => Promise.all(plant.sensors.map(({ id }) => ask(id)));
const ofSensor = (points, plant, id, ms) => points.find({ "sensor.id": id, ...since(plant, ms) }, plotted).sort({ at: 1 }).toColumns();

/** Queries by name: `ask(points, plant)` resolves to the answer. Rows of `unordered` ones may come in any order; `compared` is the part that two answers share. */
export const questions = {
  "five minutes of all sensors, one find to columns": {
    ask: (points, plant) => points.find(since(plant, 5 * MINUTE_MS), labelled).sort({ at: 1, "sensor.id": 1 }).toColumns(),
  },
  "five minutes, a find to columns a sensor": { ask: (points, plant) => each(plant, (id) => ofSensor(points, plant, id, 5 * MINUTE_MS)) },
  "the last ten seconds, a find a sensor": { ask: (points, plant) => each(plant, (id) => ofSensor(points, plant, id, 10_000)) },
  "newest of each, `$sort` and `$group`": {
    unordered: true,
    ask: (points) => points.aggregate([{ $sort: { at: -1 } }, { $group: { _id: "$sensor.id", ...LAST } }]).toArray(),
  },
  "newest of each, `$top`": {
    unordered: true,
    ask: (points) => points.aggregate([{ $group: { _id: "$sensor.id", last: { $top: { sortBy: { at: -1 }, output: OUTPUT } } } }]).toArray(),
  },
  "newest of each, a find a sensor": {
    ask: (points, plant) => each(plant, (id) => points.find({ "sensor.id": id }).sort({ at: -1 }).limit(1).toArray()),
  },
  "last minute of one sensor": { ask: (points, plant) => points.find({ "sensor.id": plant.sensors[3].id, ...since(plant, MINUTE_MS) }).sort({ at: 1 }).toArray() },
  // Of rows with equal times, any may be among them.
  "newest ten of all, `sort` and `limit`": { compared: (rows) => rows.map(({ at }) => at), ask: (points) => points.find().sort({ at: -1 }).limit(10).toArray() },
  count: { ask: (points) => points.countDocuments() },
  "count of each sensor": { unordered: true, ask: (points) => points.aggregate([{ $group: { _id: "$sensor.id", rows: { $sum: 1 } } }]).toArray() },
  "mean by minute and sensor": {
    unordered: true,
    ask: (points) => points.aggregate([{ $group: { _id: { sensor: "$sensor.id", minute }, mean: { $avg: "$value" } } }]).toArray(),
  },
  "few rows by a value": { unordered: true, ask: (points) => points.find({ value: { $gt: SPIKE } }).toArray() },
  "distinct of a field": { unordered: true, ask: (points) => points.distinct("status") },
  "distinct of the metadata": { unordered: true, ask: (points) => points.distinct("sensor.id") },
};

/** Throws unless `a` and `b` are the same answer to the query `name`. */
export function mustAgree(name, a, b) {
  const { unordered, compared = unordered ? sorted : (answer) => answer } = questions[name];
  if (!same(compared(a), compared(b))) throw new Error(`two answers to: ${name}\n${brief(a)}\n${brief(b)}`);
}

const brief = (answer) => JSON.stringify(answer)?.slice(0, 500);
const sorted = (rows) => rows.map((row) => [JSON.stringify(row), row]).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);

/** Means may differ by rounding, because rows are added in another order; everything else is exact. */
const near = (a, b) => a === b || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

function same(a, b) {
  if (typeof a === "number" && typeof b === "number") return near(a, b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => same(a[key], b[key]));
}

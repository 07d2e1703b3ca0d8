// Pairs of large and small buckets: those of `small` and `live` have up to nineteen rows, and those of `live` are in journals. No shape reads the field whose nulls closed them. All are over a tenth of the hosts, which the column of nanoseconds a row leaves out of account.

import { pair } from "./shapes.mjs";

const mean = [{ $group: { _id: "$tags.hostname", mean: { $avg: "$usage_user" } } }];
const filtered = [{ $match: { usage_user: { $gt: 75 } } }, ...mean];
const projected = [{ $project: { x: { $round: ["$usage_user", 0] } } }, { $group: { _id: null, mean: { $avg: "$x" } } }];
const window = { w: { $avg: "$usage_user", window: { documents: [-5, 0] } } };
const windowed = [{ $setWindowFields: { partitionBy: "$tags.hostname", sortBy: { time: 1 }, output: window } }, { $group: { _id: null, mean: { $avg: "$w" } } }];
const newest = [{ $sort: { time: -1 } }, { $group: { _id: "$tags.hostname", mean: { $first: "$usage_user" } } }];

const SHAPES = { "a mean": mean, "a filtered mean": filtered, "a mean of `$project`": projected, "`$setWindowFields`": windowed, "the newest row of each series": newest };

export const small = Object.entries(SHAPES).flatMap(([name, shape]) => [
  pair(`${name}: small buckets / large ones`, { of: "large", shape }, { of: "small", shape }),
  pair(`${name}: small buckets in journals / large ones`, { of: "large", shape }, { of: "live", shape }),
]);

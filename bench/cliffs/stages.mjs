// Pairs of stages: what may move past what, sorts, windows, and stages that read their rows once or twice.

import { copied, pair } from "./shapes.mjs";

const ONE = { "tags.hostname": "host_7" };
const by = (_id, of = "$usage_user") => ({ $group: { _id, mean: { $avg: of } } });
const hour = { $dateTrunc: { date: "$time", unit: "hour" } };
const whole = (of) => ({ $group: { _id: null, mean: { $avg: of } } });
/** The mean of a field that `$setWindowFields` computes for each host in the order of time, or by `sortBy`. */
const windowed = (value, { sortBy = { time: 1 }, partitionBy = "$tags.hostname" } = {}) => [
  { $setWindowFields: { partitionBy, sortBy, output: { w: value } } },
  whole("$w"),
];
const LAST_SIX = windowed({ $avg: "$usage_user", window: { documents: [-5, 0] } });

/** The mean of `next(values, row, before)` over all rows, where `before` is its result for the previous row. Results that are `undefined` do not count. */
function overRows(series, next) {
  let [total, rows] = [0, 0];
  for (const { columns } of series) {
    const values = columns.usage_user;
    let said;
    for (let row = 0; row < values.length; row++) {
      said = next(values, row, said);
      if (said === undefined) continue;
      total += said;
      rows++;
    }
  }
  return [{ mean: total / rows }];
}

const overWindows = (next, loop = copied(overRows)) => ({ same: "none", loop: (series) => loop(series, next) });

function lastSix(values, row) {
  let sum = 0;
  const from = Math.max(0, row - 5);
  for (let i = from; i <= row; i++) sum += values[i];
  return sum / (row + 1 - from);
}

function greatestOfSix(values, row) {
  let high = values[row];
  for (let i = Math.max(0, row - 5); i < row; i++) if (values[i] > high) high = values[i];
  return high;
}

const ALPHA = 2 / 7;

/** The distinct values of a field as rows. */
const distinct = (field) => (series) => {
  const found = new Set();
  for (const { columns } of series) for (const value of columns[field]) found.add(value);
  return Array.from(found, (_id) => ({ _id }));
};

export const stages = [
  // Filters.
  pair("`$match` of the key behind `$group` / in front", [{ $match: ONE }, by("$tags.hostname")], [by("$tags.hostname"), { $match: { _id: "host_7" } }]),
  pair(
    "`$match` of a part of the key behind `$group` / in front",
    [{ $match: ONE }, by({ host: "$tags.hostname", hour })],
    [by({ host: "$tags.hostname", hour }), { $match: { "_id.host": "host_7" } }],
  ),
  pair(
    "`$match` behind `$project` / in front",
    [{ $match: ONE }, { $project: { tags: 1, usage_user: 1 } }, by("$tags.hostname")],
    [{ $project: { tags: 1, usage_user: 1 } }, { $match: ONE }, by("$tags.hostname")],
  ),
  pair(
    "`$match` of a renamed field behind `$project` / in front",
    [{ $match: ONE }, by("$tags.hostname")],
    [{ $project: { host: "$tags.hostname", usage_user: 1 } }, { $match: { host: "host_7" } }, by("$host")],
  ),
  pair(
    "`$match` behind `$addFields` / in front",
    [{ $match: ONE }, { $addFields: { hour } }, by("$hour")],
    [{ $addFields: { hour } }, { $match: ONE }, by("$hour")],
  ),
  pair(
    "`$match` of a value behind `$addFields` / in front",
    [{ $match: { usage_user: { $gt: 95 } } }, { $addFields: { hour } }, by("$hour")],
    [{ $addFields: { hour } }, { $match: { usage_user: { $gt: 95 } } }, by("$hour")],
  ),
  pair(
    "`$match` behind `$sort` / in front",
    [{ $match: ONE }, { $sort: { usage_user: 1 } }, by("$tags.hostname")],
    [{ $sort: { usage_user: 1 } }, { $match: ONE }, by("$tags.hostname")],
  ),
  pair(
    "`$match` of a computed field / of a field",
    [{ $match: { usage_user: { $gt: 75 } } }, whole("$usage_idle")],
    [{ $addFields: { x: { $add: ["$usage_user", "$usage_system"] } } }, { $match: { x: { $gt: 150 } } }, whole("$usage_idle")],
    { same: "none" },
  ),

  // Fields.
  pair("`$group` by what `$addFields` gave / by the expression", [by(hour)], [{ $addFields: { hour } }, by("$hour")]),
  pair(
    "`$group` by what `$project` renamed / by the fields",
    [by("$tags.hostname")],
    [{ $project: { host: "$tags.hostname", u: "$usage_user" } }, by("$host", "$u")],
  ),
  pair(
    "`$group` behind `$replaceWith` / by the fields",
    [by("$tags.hostname")],
    [{ $replaceWith: { host: "$tags.hostname", u: "$usage_user" } }, by("$host", "$u")],
  ),
  pair("`$group` behind `$unset` / alone", [by("$tags.hostname")], [{ $unset: ["usage_idle"] }, by("$tags.hostname")]),
  pair(
    "a computed column / a column",
    { columns: [{ $project: { _id: 0, x: "$usage_user" } }] },
    { columns: [{ $project: { _id: 0, x: { $multiply: ["$usage_user", 2] } } }] },
    { same: "none" },
  ),
  pair(
    "a renamed column / a column",
    { columns: [{ $project: { _id: 0, usage_user: 1 } }] },
    { columns: [{ $project: { _id: 0, x: "$usage_user" } }] },
    { same: "none" },
  ),
  pair(
    "a path of the metadata as a column / a string as a column",
    { columns: [{ $project: { _id: 0, state: 1 } }] },
    { columns: [{ $project: { _id: 0, x: "$tags.hostname" } }] },
    { same: "none" },
  ),
  pair(
    "`$addFields` and ten rows / ten rows",
    [{ $limit: 10 }, { $project: { _id: 0, usage_user: 1 } }],
    [{ $addFields: { x: { $add: ["$usage_user", 1] } } }, { $limit: 10 }, { $project: { _id: 0, usage_user: 1 } }],
  ),

  // Sorts.
  pair(
    "rows by a path of the metadata and time / by the metadata and time",
    [{ $sort: { tags: 1, time: 1 } }, { $skip: 1000 }, { $limit: 1000 }, { $project: { _id: 0, time: 1 } }],
    [{ $sort: { "tags.hostname": 1, time: 1 } }, { $skip: 1000 }, { $limit: 1000 }, { $project: { _id: 0, time: 1 } }],
  ),
  pair(
    "all rows by paths of the metadata and time / by the metadata",
    { columns: [{ $sort: { tags: 1, time: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
    { columns: [{ $sort: { "tags.region": 1, "tags.hostname": 1, time: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
  ),
  pair(
    "all rows by a path of the metadata and a value / by the metadata and a value",
    { columns: [{ $sort: { tags: 1, usage_user: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
    { columns: [{ $sort: { "tags.hostname": 1, usage_user: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
  ),
  pair(
    "all rows by a path of the metadata / by the metadata",
    { columns: [{ $sort: { tags: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
    { columns: [{ $sort: { "tags.region": 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
  ),
  pair(
    "ten greatest of a computed value / of a field",
    [{ $sort: { usage_user: -1, time: 1 } }, { $limit: 10 }, { $project: { _id: 0, time: 1 } }],
    [{ $addFields: { x: { $add: ["$usage_user", "$usage_system"] } } }, { $sort: { x: -1, time: 1 } }, { $limit: 10 }, { $project: { _id: 0, time: 1 } }],
    { same: "none" },
  ),
  pair(
    "newest of each by path / by the metadata",
    [{ $sort: { tags: 1, time: -1 } }, { $group: { _id: "$tags", last: { $first: "$usage_user" } } }],
    [{ $sort: { "tags.hostname": 1, time: -1 } }, { $group: { _id: "$tags.hostname", last: { $first: "$usage_user" } } }],
  ),
  pair(
    "newest of each by `$last` behind an ascending sort / by `$first`",
    [{ $sort: { tags: 1, time: -1 } }, { $group: { _id: "$tags", last: { $first: "$usage_user" } } }],
    [{ $sort: { tags: 1, time: 1 } }, { $group: { _id: "$tags", last: { $last: "$usage_user" } } }],
  ),

  // Distinct values and counts of them.
  pair("`distinct` of an integer / by it", [{ $group: { _id: "$level" } }], { distinct: "level" }, { same: "all", loop: distinct("level") }),
  pair("`distinct` of a double / by it", [{ $group: { _id: "$usage_user" } }], { distinct: "usage_user" }, { same: "all", loop: distinct("usage_user") }),
  pair("`distinct` of a string / by it", [{ $group: { _id: "$state" } }], { distinct: "state" }, { same: "all", loop: distinct("state") }),
  pair("`$sortByCount` / `$group`", [{ $group: { _id: "$level", count: { $sum: 1 } } }], [{ $sortByCount: "$level" }], { same: "all" }),
  pair(
    "`$bucketAuto` / sort of the same values",
    [{ $sort: { usage_user: 1 } }, whole("$usage_user")],
    [{ $bucketAuto: { groupBy: "$usage_user", buckets: 10 } }],
    { same: "none" },
  ),

  pair(
    "`$bucketAuto` of a field that half of the rows have / of a field",
    [{ $bucketAuto: { groupBy: "$usage_user", buckets: 10 } }],
    [{ $bucketAuto: { groupBy: "$extra", buckets: 10 } }],
    { same: "none" },
  ),

  pair("`$sample` of 1000 rows / the three greatest", [{ $sort: { usage_user: -1 } }, { $limit: 3 }, whole("$usage_user")], [{ $sample: { size: 1000 } }, whole("$usage_user")], {
    same: "none",
  }),
  pair("`distinct` of doubles and int32s / of doubles", { distinct: "usage_user" }, { distinct: "mixed" }, { same: "none" }),
  pair(
    "`$unwind` of a made array / the means of its elements",
    [{ $group: { _id: null, a: { $avg: "$usage_user" }, b: { $avg: "$usage_system" } } }],
    [{ $project: { v: ["$usage_user", "$usage_system"] } }, { $unwind: "$v" }, whole("$v")],
    { same: "none" },
  ),
  pair(
    "rows by doubles and int32s / by doubles",
    { columns: [{ $sort: { usage_user: 1 } }, { $project: { _id: 0, usage_user: 1 } }] },
    { columns: [{ $sort: { mixed: 1 } }, { $project: { _id: 0, mixed: 1 } }] },
    { same: "none" },
  ),

  // Windows.
  pair("six rows / by host", [by("$tags.hostname")], LAST_SIX, overWindows(lastSix)),
  pair("a minute / six rows", LAST_SIX, windowed({ $avg: "$usage_user", window: { range: [-50, 0], unit: "second" } })),
  pair("six rows by the metadata / by its path", LAST_SIX, windowed({ $avg: "$usage_user", window: { documents: [-5, 0] } }, { partitionBy: "$tags" })),
  pair("greatest of six rows / mean of six rows", LAST_SIX, windowed({ $max: "$usage_user", window: { documents: [-5, 0] } }), overWindows(greatestOfSix)),
  pair("an hour of rows / six rows", LAST_SIX, windowed({ $avg: "$usage_user", window: { documents: [-359, 0] } }), { same: "none" }),
  pair(
    "three greatest of an hour of rows / of six rows",
    windowed({ $maxN: { input: "$usage_user", n: 3 }, window: { documents: [-5, 0] } }),
    windowed({ $maxN: { input: "$usage_user", n: 3 }, window: { documents: [-359, 0] } }),
    { same: "none" },
  ),
  pair(
    "`$top` of an hour of rows / of six rows",
    windowed({ $top: { sortBy: { usage_idle: 1 }, output: "$usage_user" }, window: { documents: [-5, 0] } }),
    windowed({ $top: { sortBy: { usage_idle: 1 }, output: "$usage_user" }, window: { documents: [-359, 0] } }),
    { same: "none" },
  ),
  pair(
    "the sizes of arrays of six rows / mean of six rows",
    LAST_SIX,
    [
      { $setWindowFields: { partitionBy: "$tags.hostname", sortBy: { time: 1 }, output: { w: { $push: "$usage_user", window: { documents: [-5, 0] } } } } },
      whole({ $size: "$w" }),
    ],
    { same: "none" },
  ),
  pair(
    "median of six rows / mean of six rows",
    LAST_SIX,
    windowed({ $median: { input: "$usage_user", method: "approximate" }, window: { documents: [-5, 0] } }),
    { same: "none" },
  ),
  pair(
    "a running sum / six rows",
    LAST_SIX,
    windowed({ $sum: "$usage_user", window: { documents: ["unbounded", "current"] } }),
    overWindows((values, row, before = 0) => before + values[row]),
  ),
  pair(
    "`$shift` / six rows",
    LAST_SIX,
    windowed({ $shift: { output: "$usage_user", by: -1 } }),
    overWindows((values, row) => (row > 0 ? values[row - 1] : undefined)),
  ),
  pair("`$documentNumber` / six rows", LAST_SIX, windowed({ $documentNumber: {} }), { same: "none" }),
  pair(
    "`$rank` / `$documentNumber`",
    windowed({ $documentNumber: {} }, { sortBy: { usage_user: 1 } }),
    windowed({ $rank: {} }, { sortBy: { usage_user: 1 } }),
    { same: "none" },
  ),
  pair("`$derivative` / six rows", LAST_SIX, windowed({ $derivative: { input: "$usage_user", unit: "second" }, window: { documents: [-1, 0] } }), {
    same: "none",
  }),
  pair("`$integral` / six rows", LAST_SIX, windowed({ $integral: { input: "$usage_user", unit: "second" }, window: { documents: [-5, 0] } }), { same: "none" }),
  pair(
    "`$expMovingAvg` / six rows",
    LAST_SIX,
    windowed({ $expMovingAvg: { input: "$usage_user", N: 6 } }),
    overWindows((values, row, before = values[row]) => before + ALPHA * (values[row] - before)),
  ),
  pair("`$locf` / six rows", LAST_SIX, windowed({ $locf: "$extra" }), { same: "none" }),
  pair("`$linearFill` / `$locf`", windowed({ $locf: "$extra" }), windowed({ $linearFill: "$extra" }), { same: "none" }),
  pair("`$fill` / `$linearFill`", windowed({ $linearFill: "$extra" }), [
    { $fill: { partitionBy: "$tags.hostname", sortBy: { time: 1 }, output: { extra: { method: "linear" } } } },
    whole("$extra"),
  ]),

  // Rows of several reads.
  pair("`$facet` of two / the two", { each: { a: [by("$tags.hostname")], b: [by(hour)] } }, [{ $facet: { a: [by("$tags.hostname")], b: [by(hour)] } }]),
  pair(
    "`$facet` behind `$match` / the two",
    { each: { a: [{ $match: { usage_user: { $gt: 75 } } }, by("$tags.hostname")], b: [{ $match: { usage_user: { $gt: 75 } } }, by(hour)] } },
    [{ $match: { usage_user: { $gt: 75 } } }, { $facet: { a: [by("$tags.hostname")], b: [by(hour)] } }],
  ),
  pair(
    "`$unionWith` a filtered half / the two halves",
    { each: { a: [{ $match: { usage_user: { $gt: 50 } } }, whole("$usage_idle")], b: [{ $match: { usage_user: { $lte: 50 } } }, whole("$usage_idle")] } },
    [{ $match: { usage_user: { $gt: 50 } } }, { $unionWith: { coll: "points", pipeline: [{ $match: { usage_user: { $lte: 50 } } }] } }, whole("$usage_idle")],
    { same: "none" },
  ),
  pair(
    "`$lookup` of the means of each host / the two means",
    { each: { a: [by("$tags.hostname")], b: [by("$tags.hostname", "$usage_idle")] } },
    [
      by("$tags.hostname"),
      { $lookup: { from: "points", localField: "_id", foreignField: "tags.hostname", pipeline: [by("$tags.hostname", "$usage_idle")], as: "idle" } },
    ],
    { same: "none" },
  ),
  pair(
    "`$lookup` of the means of each host by a variable / the two means",
    { each: { a: [by("$tags.hostname")], b: [by("$tags.hostname", "$usage_idle")] } },
    [
      by("$tags.hostname"),
      {
        $lookup: {
          from: "points",
          let: { host: "$_id" },
          pipeline: [by("$tags.hostname", "$usage_idle"), { $match: { $expr: { $eq: ["$_id", "$$host"] } } }],
          as: "idle",
        },
      },
    ],
    { same: "none" },
  ),
  pair(
    "`$densify` of an even series / its sort",
    [{ $match: ONE }, { $sort: { usage_user: 1 } }, whole("$usage_user")],
    [{ $match: ONE }, { $densify: { field: "time", range: { step: 10, unit: "second", bounds: "full" } } }, whole("$usage_user")],
  ),
  pair(
    "`$densify` of even series of all hosts / their sort",
    [{ $sort: { "tags.hostname": 1, usage_user: 1 } }, whole("$usage_user")],
    [{ $densify: { field: "time", partitionByFields: ["tags.hostname"], range: { step: 10, unit: "second", bounds: "full" } } }, whole("$usage_user")],
  ),
  pair(
    "hourly means of means by minute / by host and minute",
    [by({ host: "$tags.hostname", minute: { $dateTrunc: { date: "$time", unit: "minute" } } }), { $count: "n" }],
    [
      by({ host: "$tags.hostname", minute: { $dateTrunc: { date: "$time", unit: "minute" } } }),
      { $group: { _id: { host: "$_id.host", hour: { $dateTrunc: { date: "$_id.minute", unit: "hour" } } }, mean: { $avg: "$mean" } } },
    ],
    { same: "none" },
  ),
];

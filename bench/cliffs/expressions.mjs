// Pairs of values: arithmetic, conditions, strings and accumulators in a group of each host, and filters.

import { copied, pair } from "./shapes.mjs";

const each = (values) => [{ $group: { _id: "$tags.hostname", ...values } }];
const mean = (expression) => each({ mean: { $avg: expression } });
const [U, S, I] = ["$usage_user", "$usage_system", "$usage_idle"];
const plain = mean(U);
const HALF = 50;
const START = Date.UTC(2026, 0, 1);
const SINCE = { $subtract: ["$time", new Date(START)] };

/** The mean of the values of `of(columns, row)`, for each host. */
function means(series, of) {
  return series.map(({ columns }) => {
    const rows = columns.time.length;
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += of(columns, row);
    return { mean: sum / rows };
  });
}

/** The number of rows for which `holds(columns, row)` is true. */
function count(series, holds) {
  let count = 0;
  for (const { columns } of series) {
    const rows = columns.time.length;
    for (let row = 0; row < rows; row++) if (holds(columns, row)) count++;
  }
  return [{ count }];
}

const looped =
  (of, loop = copied(means)) =>
  (series) =>
    loop(series, of);
const counted =
  (holds, loop = copied(count)) =>
  (series) =>
    loop(series, holds);

/** The value of `of(columns)` for each host. */
const eachHost = (of) => (series) => series.map(({ columns }) => of(columns));

function spread({ usage_user: values }) {
  let [mean, squares] = [0, 0];
  for (let row = 0; row < values.length; row++) {
    const away = values[row] - mean;
    mean += away / (row + 1);
    squares += away * (values[row] - mean);
  }
  return { spread: Math.sqrt(squares / values.length) };
}

const middle = ({ usage_user: values }) => ({ middle: values.toSorted()[Math.ceil(values.length / 2) - 1] });

function highest({ usage_user: u, usage_system: s }) {
  let high = -Infinity;
  for (let row = 0; row < u.length; row++) if (u[row] + s[row] > high) high = u[row] + s[row];
  return { high };
}

function most({ time, usage_user: values }) {
  let best = 0;
  for (let row = 1; row < values.length; row++) if (values[row] > values[best]) best = row;
  return { most: time[best] };
}

/** A pair whose first shape is the plain mean of a field, which reads one column. */
const computed = (name, expression, of) => pair(`mean of ${name} / of a field`, plain, mean(expression), { same: "none", loop: of && looped(of) });
const filtered = (name, filter, expression, holds) =>
  pair(`count by ${name} / by a filter`, { count: filter }, { count: { $expr: expression } }, { loop: holds && counted(holds) });

export const expressions = [
  // Fields of objects.
  pair("mean of a path into an object / of a field", plain, mean("$usage.user")),
  pair("mean of a path into objects that differ in their fields / of a field", { of: "large", shape: plain }, { of: "uneven", shape: mean("$io.read") }),
  pair("mean of two paths' difference / of two fields'", mean({ $subtract: [U, S] }), mean({ $subtract: ["$usage.user", "$usage.system"] })),
  pair(
    "mean of a field that is set in an object / of a sum",
    mean({ $add: [U, 1] }),
    [{ $addFields: { "usage.more": { $add: ["$usage.user", 1] } } }, ...mean("$usage.more")],
  ),
  pair("mean of a path behind `$unset` of another / of a field", plain, [{ $unset: "usage.system" }, ...mean("$usage.user")]),
  pair(
    "mean of a field of an object that replaces the row / of a field",
    [{ $group: { _id: null, mean: { $avg: U } } }],
    [{ $replaceRoot: { newRoot: "$usage" } }, { $group: { _id: null, mean: { $avg: "$user" } } }],
  ),
  pair(
    "mean of a field that is merged into the row / that is added to it",
    [{ $addFields: { more: { $add: [U, 1] } } }, ...mean("$more")],
    [{ $replaceWith: { $mergeObjects: ["$$ROOT", { more: { $add: [U, 1] } }] } }, ...mean("$more")],
  ),
  pair("mean behind `$redact` of rows / behind `$match`", [{ $match: { usage_user: { $gt: HALF } } }, ...mean(U)], [
    { $redact: { $cond: [{ $gt: [U, HALF] }, "$$KEEP", "$$PRUNE"] } },
    ...mean(U),
  ]),
  pair("count by a filter of doubles and int32s / of doubles", { count: { usage_user: { $gt: HALF } } }, { count: { mixed: { $gt: HALF } } }, { same: "none" }),
  pair(
    "three greatest of doubles and int32s / of doubles",
    [{ $sort: { usage_user: -1 } }, { $limit: 3 }, { $project: { _id: 0, usage_user: 1 } }],
    [{ $sort: { mixed: -1 } }, { $limit: 3 }, { $project: { _id: 0, mixed: 1 } }],
    { same: "none" },
  ),
  pair("count by a filter of a path / of a field", { count: { usage_user: { $gt: HALF } } }, { count: { "usage.user": { $gt: HALF } } }),
  pair("three greatest by a path / by a field", [{ $sort: { usage_user: -1 } }, { $limit: 3 }, { $project: { _id: 0, usage_user: 1 } }], [
    { $sort: { "usage.user": -1 } },
    { $limit: 3 },
    { $project: { _id: 0, usage_user: 1 } },
  ]),

  // Arithmetic.
  computed("a sum", { $add: [U, S] }, ({ usage_user: u, usage_system: s }, row) => u[row] + s[row]),
  computed(
    "a polynomial",
    { $add: [{ $multiply: [U, U, 0.5] }, { $multiply: [S, -2] }, { $divide: [I, 3] }, 7] },
    ({ usage_user: u, usage_system: s, usage_idle: i }, row) => u[row] * u[row] * 0.5 + s[row] * -2 + i[row] / 3 + 7,
  ),
  computed("a length", { $sqrt: { $add: [{ $multiply: [U, U] }, { $multiply: [S, S] }] } }, ({ usage_user: u, usage_system: s }, row) =>
    Math.sqrt(u[row] * u[row] + s[row] * s[row]),
  ),
  computed("a distance", { $abs: { $subtract: [U, S] } }, ({ usage_user: u, usage_system: s }, row) => Math.abs(u[row] - s[row])),
  computed("`$floor`", { $floor: U }, ({ usage_user: u }, row) => Math.floor(u[row])),
  computed("`$round` to a digit", { $round: [U, 1] }),
  computed("`$mod`", { $mod: [U, 10] }, ({ usage_user: u }, row) => u[row] % 10),
  computed("a square", { $pow: [U, 2] }, ({ usage_user: u }, row) => u[row] ** 2),
  computed("`$pow`", { $pow: [U, 1.5] }, ({ usage_user: u }, row) => u[row] ** 1.5),
  computed("`$ln`", { $ln: { $add: [U, 1] } }, ({ usage_user: u }, row) => Math.log(u[row] + 1)),
  computed("`$sin`", { $sin: { $degreesToRadians: U } }, ({ usage_user: u }, row) => Math.sin((u[row] * Math.PI) / 180)),
  computed("the greater of two", { $max: [U, S] }, ({ usage_user: u, usage_system: s }, row) => Math.max(u[row], s[row])),
  computed("`$sum` of three", { $sum: [U, S, I] }, ({ usage_user: u, usage_system: s, usage_idle: i }, row) => u[row] + s[row] + i[row]),
  computed("an integer times a double", { $multiply: ["$level", U] }, ({ usage_user: u, level }, row) => u[row] * level[row]),
  computed("an integer", "$level", ({ level }, row) => level[row]),
  computed("`$bitAnd`", { $bitAnd: ["$level", { $toInt: 3 }] }, ({ level }, row) => level[row] & 3),
  computed("`$toInt`", { $toInt: U }, ({ usage_user: u }, row) => Math.trunc(u[row])),
  computed(
    "`$let`",
    { $let: { vars: { x: { $subtract: [U, S] } }, in: { $multiply: ["$$x", "$$x"] } } },
    ({ usage_user: u, usage_system: s }, row) => (u[row] - s[row]) ** 2,
  ),

  computed("`$trunc`", { $trunc: U }, ({ usage_user: u }, row) => Math.trunc(u[row])),
  computed("`$toLong`", { $toLong: U }, ({ usage_user: u }, row) => Math.trunc(u[row])),
  computed("a decimal", { $toDecimal: U }),

  // Arrays that are made for their elements.
  computed("an element of a made array", { $arrayElemAt: [[U, S], 1] }, ({ usage_system: s }, row) => s[row]),
  pair("sum of a made array / `$sum` of its elements", mean({ $sum: [U, S] }), mean({ $sum: [[U, S]] })),
  pair("greatest of `$map` over a made array / of its elements", mean({ $max: [U, S] }), mean({ $max: { $map: { input: [U, S], in: "$$this" } } })),
  pair(
    "`$reduce` over a made array / `$add` of its elements",
    mean({ $add: [U, S, I] }),
    mean({ $reduce: { input: [U, S, I], initialValue: 0, in: { $add: ["$$value", "$$this"] } } }),
  ),
  computed("the size of `$objectToArray`", { $size: { $objectToArray: "$usage" } }),

  // Conditions.
  computed("`$cond`", { $cond: [{ $gt: [U, HALF] }, U, 0] }, ({ usage_user: u }, row) => (u[row] > HALF ? u[row] : 0)),
  computed(
    "`$switch`",
    { $switch: { branches: [25, 50, 75].map((bound, i) => ({ case: { $lt: [U, bound] }, then: i })), default: 3 } },
    ({ usage_user: u }, row) => (u[row] < 25 ? 0 : u[row] < 50 ? 1 : u[row] < 75 ? 2 : 3),
  ),
  computed("`$cond` over `$and`", { $cond: [{ $and: [{ $gt: [U, HALF] }, { $lt: [S, HALF] }] }, 1, 0] }, ({ usage_user: u, usage_system: s }, row) =>
    u[row] > HALF && s[row] < HALF ? 1 : 0,
  ),
  computed("`$cond` by a string", { $cond: [{ $eq: ["$state", "error"] }, 1, 0] }, ({ state }, row) => (state[row] === "error" ? 1 : 0)),
  computed("`$cond` by `$in`", { $cond: [{ $in: ["$state", ["error", "unknown"]] }, 1, 0] }, ({ state }, row) =>
    state[row] === "error" || state[row] === "unknown" ? 1 : 0,
  ),
  computed("`$cmp`", { $cmp: [U, S] }, ({ usage_user: u, usage_system: s }, row) => Math.sign(u[row] - s[row])),
  pair("mean of `$ifNull` / of the field", mean("$extra"), mean({ $ifNull: ["$extra", 0] }), {
    same: "none",
    loop: looped(({ extra }, row) => extra[row] ?? 0),
  }),
  computed("a field that half of the rows have", "$extra"),
  computed("a sum with a field that half of the rows have", { $add: ["$extra", 1] }),
  pair("mean of `$cond` with null / with zero", mean({ $cond: [{ $gt: [U, HALF] }, U, 0] }), mean({ $cond: [{ $gt: [U, HALF] }, U, null] }), { same: "none" }),
  pair(
    "sum of `$cond` / count behind `$match`",
    [{ $match: { usage_user: { $gt: HALF } } }, { $group: { _id: null, n: { $sum: 1 } } }],
    [{ $group: { _id: null, n: { $sum: { $cond: [{ $gt: [U, HALF] }, 1, 0] } } } }],
  ),
  computed("`$strLenCP`", { $strLenCP: "$state" }, ({ state }, row) => state[row].length),
  computed("`$indexOfCP`", { $indexOfCP: ["$state", "n"] }, ({ state }, row) => state[row].indexOf("n")),
  computed("milliseconds since a date", SINCE, ({ time }, row) => time[row] - START),
  // Int64s beside doubles: a literal of JavaScript is a double.
  computed("milliseconds since a date, or zero", { $cond: [{ $gt: [U, HALF] }, SINCE, 0] }, ({ usage_user: u, time }, row) => (u[row] > HALF ? time[row] - START : 0)),
  computed("seconds since a date, or zero", { $divide: [{ $cond: [{ $gt: [U, HALF] }, SINCE, 0] }, 1000] }, ({ usage_user: u, time }, row) => (u[row] > HALF ? (time[row] - START) / 1000 : 0)),
  computed("the greater of milliseconds and a value", { $max: [SINCE, U] }, ({ usage_user: u, time }, row) => Math.max(time[row] - START, u[row])),
  computed("`$minute`", { $minute: "$time" }, ({ time }, row) => Math.floor(time[row] / 60_000) % 60),

  // Filters.
  pair(
    "count by `$expr` of two fields / by a filter",
    { count: { usage_user: { $gt: HALF } } },
    { count: { $expr: { $gt: [U, S] } } },
    { same: "none", loop: counted(({ usage_user: u, usage_system: s }, row) => u[row] > s[row]) },
  ),
  pair(
    "count by `$expr` of a sum / by a filter",
    { count: { usage_user: { $gt: HALF } } },
    { count: { $expr: { $gt: [{ $add: [U, S] }, 150] } } },
    { same: "none", loop: counted(({ usage_user: u, usage_system: s }, row) => u[row] + s[row] > 150) },
  ),
  filtered(
    "`$and` in `$expr`",
    { usage_user: { $gt: HALF }, usage_system: { $lt: HALF } },
    { $and: [{ $gt: [U, HALF] }, { $lt: [S, HALF] }] },
    ({ usage_user: u, usage_system: s }, row) => u[row] > HALF && s[row] < HALF,
  ),
  filtered(
    "`$or` in `$expr`",
    { $or: [{ usage_user: { $gt: 90 } }, { usage_system: { $lt: 10 } }] },
    { $or: [{ $gt: [U, 90] }, { $lt: [S, 10] }] },
    ({ usage_user: u, usage_system: s }, row) => u[row] > 90 || s[row] < 10,
  ),
  filtered("`$in` in `$expr`", { level: { $in: [1, 3, 5] } }, { $in: ["$level", [1, 3, 5]] }),
  filtered("`$eq` of a string in `$expr`", { state: "error" }, { $eq: ["$state", "error"] }),
  filtered("`$regexMatch` in `$expr`", { state: { $regex: "^e" } }, { $regexMatch: { input: "$state", regex: "^e" } }),
  filtered("a path of the metadata in `$expr`", { "tags.hostname": "host_7" }, { $eq: ["$tags.hostname", "host_7"] }),
  filtered("`$in` of a path of the metadata in `$expr`", { "tags.hostname": { $in: ["host_7", "host_8"] } }, { $in: ["$tags.hostname", ["host_7", "host_8"]] }),
  filtered("the time in `$expr`", { time: { $gte: new Date(Date.UTC(2026, 0, 1, 1)) } }, { $gte: ["$time", new Date(Date.UTC(2026, 0, 1, 1))] }),
  pair(
    "count by `$hour` in `$expr` / by a filter of a value",
    { count: { usage_user: { $gt: HALF } } },
    { count: { $expr: { $eq: [{ $hour: "$time" }, 0] } } },
    { same: "none", loop: counted(({ time }, row) => Math.floor(time[row] / 3_600_000) % 24 === 0) },
  ),
  filtered("`$not` in `$expr`", { usage_user: { $lte: HALF } }, { $not: [{ $gt: [U, HALF] }] }),
  pair("count by `$ne` null in `$expr` / by a filter", { count: { extra: { $ne: null } } }, { count: { $expr: { $ne: ["$extra", null] } } }, { same: "none" }),
  pair("count by a path that `$addFields` has set / by the field", { count: { usage_user: { $gt: 75 } } }, [
    { $addFields: { "x.y": U } },
    { $match: { "x.y": { $gt: 75 } } },
    { $count: "count" },
  ]),
  pair("count by `$not` / by its opposite", { count: { usage_user: { $lte: HALF } } }, { count: { usage_user: { $not: { $gt: HALF } } } }),
  pair("count by `$mod` / by `$in`", { count: { level: { $in: [0, 2, 4, 6, 8, 10] } } }, { count: { level: { $mod: [2, 0] } } }),
  pair("count by a pattern / by a string", { count: { state: "error" } }, { count: { state: { $regex: "^err" } } }),
  pair("count by a pattern of the metadata / by a string", { count: { "tags.hostname": "host_7" } }, { count: { "tags.hostname": { $regex: "^host_7$" } } }),

  pair(
    "count of times as texts, to the second / to the day",
    { count: { $expr: { $gt: [{ $dateToString: { date: "$time", format: "%Y-%m-%d" } }, "2026-01-01"] } } },
    { count: { $expr: { $gt: [{ $dateToString: { date: "$time", format: "%Y-%m-%d %H:%M:%S" } }, "2026-01-01 03:00:00"] } } },
    { same: "none" },
  ),
  pair("mean length of doubles as texts / of rounded doubles", mean({ $round: [U, 2] }), mean({ $strLenBytes: { $toString: { $round: [U, 2] } } }), { same: "none" }),

  // Arrays.
  pair("mean of `$sum` of a list / of two fields", mean({ $sum: [U, S] }), mean({ $sum: "$list" }), {
    loop: looped(({ usage_user, usage_system }, row) => usage_user[row] + usage_system[row]),
  }),
  pair("mean of an element / of a field", mean(S), mean({ $arrayElemAt: ["$list", 1] }), { loop: looped(({ usage_system }, row) => usage_system[row]) }),
  pair("mean of `$size` of `$filter` / of two `$cond`", mean({ $add: [{ $cond: [{ $gt: [U, HALF] }, 1, 0] }, { $cond: [{ $gt: [S, HALF] }, 1, 0] }] }), mean({ $size: { $filter: { input: "$list", cond: { $gt: ["$$this", HALF] } } } })),
  pair("count by an element of a list / by two fields", { count: { $or: [{ usage_user: { $gt: 75 } }, { usage_system: { $gt: 75 } }] } }, { count: { list: { $gt: 75 } } }),

  // Accumulators.
  pair("`$stdDevPop` / `$avg`", plain, each({ spread: { $stdDevPop: U } }), { same: "none", loop: eachHost(spread) }),
  pair("`$median` / `$stdDevPop`", each({ spread: { $stdDevPop: U } }), each({ middle: { $median: { input: U, method: "approximate" } } }), {
    same: "none",
    loop: eachHost(middle),
  }),
  pair(
    "`$percentile` of three / `$median`",
    each({ middle: { $median: { input: U, method: "approximate" } } }),
    each({ some: { $percentile: { input: U, p: [0.5, 0.9, 0.99], method: "approximate" } } }),
    { same: "none" },
  ),
  pair("mean of doubles and int32s / of doubles", plain, mean("$mixed"), { same: "none" }),
  pair(
    "`$addToSet` / by host and value",
    [{ $group: { _id: { host: "$tags.hostname", level: "$level" } } }, { $group: { _id: null, n: { $sum: 1 } } }],
    [...each({ set: { $addToSet: "$level" } }), { $group: { _id: null, n: { $sum: { $size: "$set" } } } }],
  ),
  pair(
    "`$addToSet` of a field that half of the rows have / of a field",
    each({ set: { $addToSet: { $floor: U } } }),
    each({ set: { $addToSet: { $floor: "$extra" } } }),
    { same: "none" },
  ),
  pair("`$addToSet` of strings / of integers", each({ set: { $addToSet: "$level" } }), each({ set: { $addToSet: "$state" } }), { same: "none" }),
  pair("`$mergeObjects` / `$last` of an object", each({ last: { $last: "$usage" } }), each({ last: { $mergeObjects: "$usage" } })),
  pair("`$max` of strings / of doubles", each({ high: { $max: U } }), each({ high: { $max: "$state" } }), { same: "none" }),
  pair("`$push` / `$avg`", plain, [...each({ all: { $push: U } }), { $project: { n: { $size: "$all" } } }], { same: "none" }),
  pair(
    "differences of neighbours in a list by `$range` / by `$map` of its elements",
    [...each({ all: { $push: U } }), { $project: { s: { $sum: { $map: { input: "$all", in: { $subtract: ["$$this", 1] } } } } } }],
    [...each({ all: { $push: U } }), { $project: { s: { $sum: { $map: { input: { $range: [1, { $size: "$all" }] }, in: { $subtract: [{ $arrayElemAt: ["$all", "$$this"] }, { $arrayElemAt: ["$all", { $subtract: ["$$this", 1] }] }] } } } } } }],
    { same: "none" },
  ),
  pair("`$firstN` of three / `$first`", each({ some: { $first: U } }), each({ some: { $firstN: { input: U, n: 3 } } }), { same: "none" }),
  pair("`$maxN` of three / `$avg`", plain, each({ some: { $maxN: { input: U, n: 3 } } }), { same: "none" }),
  pair("`$max` of a sum / mean of a sum", mean({ $add: [U, S] }), each({ high: { $max: { $add: [U, S] } } }), { same: "none", loop: eachHost(highest) }),
  pair("`$top` by a value / `$avg`", plain, each({ most: { $top: { sortBy: { usage_user: -1 }, output: "$time" } } }), { same: "none", loop: eachHost(most) }),
  pair(
    "`$topN` of three by a value / `$top`",
    each({ most: { $top: { sortBy: { usage_user: -1 }, output: "$time" } } }),
    each({ most: { $topN: { n: 3, sortBy: { usage_user: -1 }, output: "$time" } } }),
    { same: "none" },
  ),
  pair(
    "`$topN` of three by time / `$top`",
    each({ most: { $top: { sortBy: { time: -1 }, output: U } } }),
    each({ most: { $topN: { n: 3, sortBy: { time: -1 }, output: U } } }),
    { same: "none" },
  ),
  pair(
    "ten accumulators of two fields / a mean of each",
    each({ u: { $avg: U }, s: { $avg: S } }),
    each(
      Object.fromEntries(
        ["$avg", "$sum", "$min", "$max", "$stdDevPop"].flatMap((operator) => [
          [`${operator.slice(1)}_u`, { [operator]: U }],
          [`${operator.slice(1)}_s`, { [operator]: S }],
        ]),
      ),
    ),
    { same: "none" },
  ),
];

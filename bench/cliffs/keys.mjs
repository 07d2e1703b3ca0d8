// Pairs of keys: metadata and its paths, parts of dates, computed values.

import { copied, pair } from "./shapes.mjs";

const mean = { mean: { $avg: "$usage_user" } };
const by = (_id, values = mean) => [{ $group: { _id, ...values } }];
const bin = (unit, more) => ({ $dateTrunc: { date: "$time", unit, ...more } });
const EPOCH = new Date(0);
const MINUTE_MS = 60_000;
const tags = (...names) => Object.fromEntries(names.map((name) => [name, `$tags.${name}`]));

/** Means of `usage_user` by a key that is computed from columns and row. */
function means(series, keyOf) {
  const groups = new Map();
  for (const { columns } of series) {
    const values = columns.usage_user;
    for (let row = 0; row < values.length; row++) {
      const key = keyOf(columns, row);
      let group = groups.get(key);
      if (group === undefined) groups.set(key, (group = { sum: 0, count: 0 }));
      group.sum += values[row];
      group.count++;
    }
  }
  return Array.from(groups.values(), ({ sum, count }) => ({ mean: sum / count }));
}

const looped =
  (keyOf, loop = copied(means)) =>
  (series) =>
    loop(series, keyOf);

const upToHundred = Array.from({ length: 12 }, (_, i) => i * 10);

export const keys = [
  // Metadata.
  pair("by a path of the metadata / by the metadata", by("$tags"), by("$tags.hostname")),
  pair("by four paths / by the metadata", by("$tags"), by(tags("hostname", "region", "os", "team"))),
  pair(
    "by four paths and hour / by the metadata and hour",
    by({ tags: "$tags", hour: bin("hour") }),
    by({ ...tags("hostname", "region", "os", "team"), hour: bin("hour") }),
  ),
  pair("by path and hour / by the metadata and hour", by({ tags: "$tags", hour: bin("hour") }), by({ ...tags("hostname"), hour: bin("hour") })),
  pair("by host and hour of `$project` / by the metadata and hour", by({ tags: "$tags", hour: bin("hour") }), [
    { $project: { _id: 0, hour: bin("hour"), host: "$tags.hostname", usage_user: 1 } },
    ...by({ host: "$host", hour: "$hour" }),
  ]),
  pair("by two paths / by the metadata", by("$tags"), by(tags("region", "os")), { same: "none" }),
  pair("by `$concat` of two paths / by the metadata", by("$tags"), by({ $concat: ["$tags.region", "/", "$tags.os"] }), { same: "none" }),
  pair("by `$cond` of a path / by the metadata", by("$tags"), by({ $cond: [{ $eq: ["$tags.os", "Ubuntu15.10"] }, "old", "new"] }), { same: "none" }),
  pair("by `$toUpper` of a path / by the metadata", by("$tags"), by({ $toUpper: "$tags.hostname" })),

  // Many groups.
  pair("by host and minute / by host and hour, a group", by({ ...tags("hostname"), hour: bin("hour") }), by({ ...tags("hostname"), minute: bin("minute") }), {
    same: "none",
    per: "rows",
  }),
  pair(
    "count of groups by host and minute / by host and hour",
    [...by({ ...tags("hostname"), hour: bin("hour") }), { $count: "groups" }],
    [...by({ ...tags("hostname"), minute: bin("minute") }), { $count: "groups" }],
    { same: "none" },
  ),
  pair("by the time itself / by minute, a group", by(bin("minute")), by("$time"), { same: "none", per: "rows" }),

  pair("by host and integer / by host", by("$tags.hostname"), by({ ...tags("hostname"), level: "$level" }), { same: "none" }),
  pair("by host and string / by host", by("$tags.hostname"), by({ ...tags("hostname"), state: "$state" }), { same: "none" }),

  // Dates.
  pair("by `$hour` / by `$dateTrunc` hour", by(bin("hour")), by({ $hour: "$time" }), {
    loop: looped(({ time }, row) => Math.floor(time[row] / 3_600_000) % 24),
  }),
  pair(
    "by day, hour, minute / by `$dateTrunc` minute",
    by(bin("minute")),
    by({ day: { $dayOfMonth: "$time" }, hour: { $hour: "$time" }, minute: { $minute: "$time" } }),
    {
      loop: looped(({ time }, row) => Math.floor(time[row] / MINUTE_MS)),
    },
  ),
  pair("by `$dateToString` to the hour / by `$dateTrunc` hour", by(bin("hour")), by({ $dateToString: { date: "$time", format: "%Y-%m-%dT%H" } })),
  pair(
    "by `$subtract` and `$mod` of the time / by `$dateTrunc` minute",
    by(bin("minute")),
    by({ $subtract: ["$time", { $mod: [{ $subtract: ["$time", EPOCH] }, MINUTE_MS] }] }),
    {
      loop: looped(({ time }, row) => time[row] - (time[row] % MINUTE_MS)),
    },
  ),
  pair("by `$floor` of milliseconds / by `$dateTrunc` minute", by(bin("minute")), by({ $floor: { $divide: [{ $toLong: "$time" }, MINUTE_MS] } })),
  pair("by `$dateDiff` from a constant / by `$dateTrunc` minute", by(bin("minute")), by({ $dateDiff: { startDate: EPOCH, endDate: "$time", unit: "minute" } })),
  pair("by hour in Berlin / by hour", by(bin("hour")), by(bin("hour", { timezone: "Europe/Berlin" }))),
  pair("by `$hour` in New York / by hour", by(bin("hour")), by({ $hour: { date: "$time", timezone: "America/New_York" } })),
  pair("by day in New York / by day", by(bin("day")), by(bin("day", { timezone: "America/New_York" })), { same: "none" }),
  pair("by `$dayOfWeek` and `$hour` / by hour", by(bin("hour")), by({ day: { $dayOfWeek: "$time" }, hour: { $hour: "$time" } })),
  pair("by `$isoWeek` / by week", by(bin("week", { startOfWeek: "monday" })), by({ year: { $isoWeekYear: "$time" }, week: { $isoWeek: "$time" } })),
  pair(
    "by `$dateTrunc` of `$dateAdd` / by hour",
    by(bin("hour")),
    by({ $dateTrunc: { date: { $dateAdd: { startDate: "$time", unit: "hour", amount: 1 } }, unit: "hour" } }),
  ),
  pair("by `$dateToParts` hour / by hour", by(bin("hour")), by({ $getField: { field: "hour", input: { $dateToParts: { date: "$time" } } } })),

  // Values.
  pair(
    "`$bucket` / by `$floor` of a tenth",
    by({ $floor: { $divide: ["$usage_user", 10] } }),
    [{ $bucket: { groupBy: "$usage_user", boundaries: upToHundred, output: mean } }],
    {
      loop: looped(({ usage_user }, row) => Math.floor(usage_user[row] / 10)),
    },
  ),
  pair("by `$floor` of a tenth / by an integer field", by("$level"), by({ $floor: { $divide: ["$usage_user", 10] } }), {
    loop: looped(({ usage_user }, row) => Math.floor(usage_user[row] / 10)),
  }),
  pair("by `$trunc` to tens / by an integer field", by("$level"), by({ $trunc: ["$usage_user", -1] })),
  pair("by `$floor` of a field that half of the rows have / of a field", by({ $floor: "$usage_system" }), by({ $floor: "$extra" }), { same: "none" }),
  pair("by a comparison / by an integer field", by("$level"), by({ $gt: ["$usage_user", 50] }), {
    same: "none",
    loop: looped(({ usage_user }, row) => usage_user[row] > 50),
  }),
  pair("by `$toString` of an integer / by the integer", by("$level"), by({ $toString: "$level" })),
  pair("by an integer and a string / by the integer", by("$level"), by({ level: "$level", state: "$state" }), { same: "none" }),
  pair("by a string / by an integer", by("$level"), by("$state"), { same: "none" }),
  pair("by a string or another one / by the string", by("$state"), by({ $ifNull: ["$state", "none"] })),
  pair("by `$toUpper` of a string / by the string", by("$state"), by({ $toUpper: "$state" })),
  pair("by `$concat` of a string / by the string", by("$state"), by({ $concat: ["state ", "$state"] })),
  pair("by `$substrCP` of a string / by the string", by("$state"), by({ $substrCP: ["$state", 0, 2] })),
  pair("by `$type` of a field / by an integer", by("$level"), by({ $type: "$extra" }), { same: "none" }),
  pair("by an object / by its field", by("$usage.cores.busy"), by("$usage.cores")),
  pair(
    "by `$concat` of host and string / by host and string",
    by({ ...tags("hostname"), state: "$state" }),
    by({ $concat: ["$tags.hostname", "/", "$state"] }),
  ),
  pair(
    "count of groups by `$toString` of a double / by the double",
    [...by("$usage_user"), { $count: "groups" }],
    [...by({ $toString: "$usage_user" }), { $count: "groups" }],
  ),
  pair(
    "count of groups by a field of doubles and int32s / of doubles",
    [...by("$usage_user"), { $count: "groups" }],
    [...by("$mixed"), { $count: "groups" }],
    { same: "none" },
  ),
  pair("by a double, 10 000 values / by an integer", by("$level"), [...by("$usage_user"), { $count: "groups" }], { same: "none" }),
];

// A hundred and twenty meters with a row every minute: a counter of 64-bit integers, some rows that come late, and nulls, each of which closes a bucket.

import { Long } from "../../js/node_modules/bson/lib/bson.node.mjs";
import { START, generator } from "../tsbs/random.mjs";

const METERS = 120;
const MINUTES = 2000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function rows() {
  const random = generator("meters");
  const meters = Array.from({ length: METERS }, (_, number) => ({
    labels: { id: `meter ${number}`, site: `site ${number % 8}`, kind: ["heat", "light", "pump", "car"][number % 4], floor: number % 5 },
    kwh: 1000 + random.below(90_000),
    watts: 500 + random.next() * 2000,
  }));
  const all = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    for (const meter of meters) {
      if (random.next() < 0.03) continue;
      meter.watts = Math.max(0, meter.watts + random.normal() * 30);
      meter.kwh += Math.floor(meter.watts / 60 + random.next());
      const late = random.next() < 0.02 ? random.below(HOUR_MS) : 0;
      all.push({
        time: new Date(START + minute * MINUTE_MS - late),
        labels: meter.labels,
        kwh: Long.fromNumber(meter.kwh),
        watts: Math.round(meter.watts * 10) / 10,
        volts: random.next() < 0.05 ? null : 230 + random.normal() * 3,
        amperes: meter.watts / 230,
        quality: random.of([0, 0, 0, 0, 1, 2, 3]),
        phase: random.of(["L1", "L2", "L3"]),
        ...(random.next() < 0.3 && { temperature: Math.round((20 + random.normal() * 4) * 100) / 100 }),
        note: `reading ${random.below(400)} of ${meter.labels.kind}`,
      });
    }
  }
  return all;
}

const n = { $sum: 1 };
const hour = { $dateTrunc: { date: "$time", unit: "hour" } };
const HOUR = `(time // ${HOUR_MS}) * ${HOUR_MS}`;

export const meters = {
  name: "meters",
  meta: "labels",
  rows,
  columns: { time: "bigint", id: "varchar", site: "varchar", kind: "varchar", floor: "integer", kwh: "bigint", watts: "double", volts: "double", amperes: "double", quality: "integer", phase: "varchar", temperature: "double", note: "varchar" },
  queries: {
    "span of a counter by site and kind": {
      pipeline: [{ $group: { _id: { site: "$labels.site", kind: "$labels.kind" }, greatest: { $max: "$kwh" }, least: { $min: "$kwh" } } }],
      sql: "select site, kind, max(kwh)::double as greatest, min(kwh)::double as least from meters group by all",
      keys: ["site", "kind"],
    },
    "mean by site and hour": {
      pipeline: [{ $group: { _id: { site: "$labels.site", hour }, watts: { $avg: "$watts" } } }],
      sql: `select site, ${HOUR} as hour, avg(watts) as watts from meters group by all`,
      keys: ["site", "hour"],
    },
    "count of nulls by floor": {
      pipeline: [{ $group: { _id: "$labels.floor", n: { $sum: { $cond: [{ $eq: ["$volts", null] }, 1, 0] } } } }],
      sql: "select floor as _id, sum(case when volts is null then 1 else 0 end)::integer as n from meters group by all",
    },
    "mean and deviation beside nulls": {
      pipeline: [{ $group: { _id: "$phase", mean: { $avg: "$volts" }, deviation: { $stdDevPop: "$volts" } } }],
      sql: "select phase as _id, avg(volts) as mean, stddev_pop(volts) as deviation from meters group by all",
    },
    "count by an expression": {
      pipeline: [{ $match: { $expr: { $gt: [{ $multiply: ["$volts", "$amperes"] }, 3000] } } }, { $group: { _id: "$phase", n } }],
      sql: "select phase as _id, count(*)::integer as n from meters where volts * amperes > 3000 group by all",
    },
    "mean at night": {
      pipeline: [{ $match: { $expr: { $lt: [{ $hour: "$time" }, 6] } } }, { $group: { _id: "$labels.site", watts: { $avg: "$watts" } } }],
      sql: `select site as _id, avg(watts) as watts from meters where (time // ${HOUR_MS}) % 24 < 6 group by all`,
    },
    "mean of a field that most lack": {
      pipeline: [{ $match: { temperature: { $type: "double" } } }, { $group: { _id: hour, temperature: { $avg: "$temperature" } } }],
      sql: `select ${HOUR} as _id, avg(temperature) as temperature from meters where temperature is not null group by all`,
    },
    "greatest step of each site": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$labels.id", sortBy: { time: 1 }, output: { before: { $shift: { output: "$watts", by: -1 } } } } },
        { $group: { _id: "$labels.site", step: { $max: { $abs: { $subtract: ["$watts", "$before"] } } } } },
      ],
      sql: "select site as _id, max(abs(watts - before)) as step from (select site, watts, lag(watts) over (partition by id order by time) as before from meters) group by all",
    },
    "five greatest of each hour": {
      pipeline: [
        { $group: { _id: { hour, id: "$labels.id" }, watts: { $avg: "$watts" } } },
        { $group: { _id: "$_id.hour", greatest: { $topN: { n: 5, sortBy: { watts: -1 }, output: "$watts" } } } },
        { $project: { watts: { $sum: "$greatest" } } },
      ],
      sql: `select hour as _id, sum(watts) as watts from (select hour, watts, row_number() over (partition by hour order by watts desc) as place from (select ${HOUR} as hour, id, avg(watts) as watts from meters group by all)) where place <= 5 group by all`,
    },
    "share of its site": {
      pipeline: [
        { $group: { _id: { site: "$labels.site", id: "$labels.id" }, watts: { $sum: "$watts" } } },
        { $setWindowFields: { partitionBy: "$_id.site", output: { all: { $sum: "$watts" } } } },
        { $project: { _id: "$_id.id", share: { $divide: ["$watts", "$all"] } } },
      ],
      sql: "select id as _id, watts / sum(watts) over (partition by site) as share from (select site, id, sum(watts) as watts from meters group by all)",
    },
    "far from its mean": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$labels.id", output: { mean: { $avg: "$watts" }, deviation: { $stdDevPop: "$watts" } } } },
        { $match: { $expr: { $gt: [{ $abs: { $subtract: ["$watts", "$mean"] } }, { $multiply: [2, "$deviation"] }] } } },
        { $group: { _id: "$labels.id", n } },
      ],
      sql: "select id as _id, count(*)::integer as n from (select id, watts, avg(watts) over (partition by id) as mean, stddev_pop(watts) over (partition by id) as deviation from meters) where abs(watts - mean) > 2 * deviation group by all",
    },
    "most frequent notes": {
      pipeline: [{ $group: { _id: "$note", n } }, { $sort: { n: -1, _id: 1 } }, { $limit: 20 }],
      sql: "select note as _id, count(*)::integer as n from meters group by all order by n desc, 1 limit 20",
    },
    "count by a part of a note": {
      pipeline: [{ $group: { _id: { $arrayElemAt: [{ $split: ["$note", " "] }, 1] }, n } }],
      sql: "select split_part(note, ' ', 2) as _id, count(*)::integer as n from meters group by all",
    },
    "notes of each kind": {
      pipeline: [{ $group: { _id: { kind: "$labels.kind", note: "$note" } } }, { $group: { _id: "$_id.kind", n } }],
      sql: "select kind as _id, count(distinct note)::integer as n from meters group by all",
    },
    "five hundred newest of one": {
      pipeline: [{ $match: { "labels.id": "meter 17" } }, { $sort: { time: -1 } }, { $limit: 500 }, { $project: { _id: 0, time: 1, watts: 1 } }],
      sql: "select time, watts from meters where id = 'meter 17' order by time desc limit 500",
      keys: ["time"],
    },
    "two sites and a phase by hour": {
      pipeline: [{ $match: { "labels.site": { $in: ["site 1", "site 5"] }, phase: "L2" } }, { $group: { _id: hour, watts: { $sum: "$watts" } } }],
      sql: `select ${HOUR} as _id, sum(watts) as watts from meters where site in ('site 1', 'site 5') and phase = 'L2' group by all`,
    },
  },
};

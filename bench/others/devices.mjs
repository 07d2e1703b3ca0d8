// Three hundred devices with a row every five minutes: objects of measurements, arrays that are mostly empty, and nested metadata.

import { START, generator } from "../tsbs/random.mjs";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const devices = {
  name: "devices",
  meta: "device",
  rows() {
    const random = generator("devices");
    const ds = Array.from({ length: 300 }, (_, n) => ({
      meta: { id: `dev-${n}`, model: `M${n % 7}`, place: { building: `B${n % 12}`, floor: n % 6 }, tags: ["x", "y", "z"].slice(0, 1 + (n % 3)) },
      t: 15 + random.next() * 10,
      energy: 0,
      battery: 100,
      state: "idle",
    }));
    const all = [];
    for (let m = 0; m < 700; m++)
      for (const d of ds) {
        if (random.next() < 0.04) continue;
        d.t += random.normal() * 0.1;
        d.energy += random.next() * 2;
        d.battery -= random.next() * 0.05;
        if (random.next() < 0.02) d.state = random.of(["idle", "run", "fault", "off"]);
        all.push({
          time: new Date(START + m * 5 * MINUTE_MS + random.below(4000)),
          device: d.meta,
          env: { t: Math.round(d.t * 100) / 100, h: random.below(100), p: 990 + random.below(300) / 10 },
          state: d.state,
          energy: Math.round(d.energy * 1000) / 1000,
          battery: Math.round(d.battery * 10) / 10,
          count: random.below(50),
          codes: random.next() < 0.15 ? Array.from({ length: 1 + random.below(3) }, () => random.below(9)) : [],
        });
      }
    return all;
  },
  columns: {
    time: "bigint",
    id: "varchar",
    model: "varchar",
    building: "varchar",
    floor: "integer",
    t: "double",
    h: "integer",
    p: "double",
    state: "varchar",
    energy: "double",
    battery: "double",
    count: "integer",
    codes: "varchar",
  },
  /** The value of a column of SQL. */
  cell: (r, c) =>
    c === "codes"
      ? r.codes.join("|")
      : c === "id" || c === "model"
        ? r.device[c]
        : c === "building" || c === "floor"
          ? r.device.place[c]
          : c in r.env
            ? r.env[c]
            : r[c],
  /** What makes lists of texts. */
  after: `create or replace table devices as select * exclude (codes), case when codes is null then []::integer[] else string_split(codes, '|')::integer[] end as codes from devices`,
  queries: {
    "mean of nested by building and hour": {
      pipeline: [
        { $group: { _id: { b: "$device.place.building", h: { $dateTrunc: { date: "$time", unit: "hour" } } }, t: { $avg: "$env.t" }, h2: { $max: "$env.h" } } },
      ],
      sql: `select building as b, time // ${HOUR_MS} * ${HOUR_MS} as h, avg(t) as t, max(h) as h2 from devices group by 1, 2`,
      keys: ["b", "h"],
    },
    "unpivot of env": {
      pipeline: [{ $project: { kv: { $objectToArray: "$env" } } }, { $unwind: "$kv" }, { $group: { _id: "$kv.k", v: { $avg: "$kv.v" } } }],
      sql: `select k as _id, avg(v) as v from (unpivot (select t, h::double as h, p from devices) on t, h, p into name k value v) group by all`,
    },
    "rate of energy": {
      pipeline: [
        {
          $setWindowFields: {
            partitionBy: "$device.id",
            sortBy: { time: 1 },
            output: { r: { $derivative: { input: "$energy", unit: "hour" }, window: { documents: [-1, 0] } } },
          },
        },
        { $group: { _id: "$device.model", r: { $avg: "$r" } } },
      ],
      sql: `select model as _id, avg(r) as r from (select model, (energy - lag(energy) over w) / ((time - lag(time) over w) / ${HOUR_MS}) as r from devices window w as (partition by id order by time)) group by all`,
    },
    "exponential mean": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$device.id", sortBy: { time: 1 }, output: { e: { $avg: "$env.t", window: { documents: [-5, 5] } } } } },
        { $group: { _id: "$device.model", e: { $max: "$e" } } },
      ],
      sql: `select model as _id, max(e) as e from (select model, avg(t) over (partition by id order by time rows between 5 preceding and 5 following) as e from devices) group by all`,
    },
    "changes of state": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$device.id", sortBy: { time: 1 }, output: { before: { $shift: { output: "$state", by: -1 } } } } },
        { $match: { $expr: { $ne: ["$state", "$before"] } } },
        { $group: { _id: { s: "$state", m: "$device.model" }, n: { $sum: 1 } } },
      ],
      sql: `select state as s, model as m, count(*)::integer as n from (select state, model, lag(state) over (partition by id order by time) as before from devices) where before is distinct from state group by all`,
      keys: ["s", "m"],
    },
    "time in each state": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$device.id", sortBy: { time: 1 }, output: { next: { $shift: { output: "$time", by: 1 } } } } },
        { $group: { _id: "$state", ms: { $sum: { $cond: [{ $eq: ["$next", null] }, 0, { $subtract: ["$next", "$time"] }] } } } },
      ],
      sql: `select state as _id, sum(case when next is null then 0 else next - time end)::double as ms from (select state, time, lead(time) over (partition by id order by time) as next from devices) group by all`,
    },
    codes: {
      pipeline: [{ $unwind: "$codes" }, { $group: { _id: { c: "$codes", m: "$device.model" }, n: { $sum: 1 } } }],
      sql: `select c, model as m, count(*)::integer as n from (select unnest(codes) as c, model from devices) group by all`,
      keys: ["c", "m"],
    },
    "rows with code": {
      pipeline: [{ $match: { codes: { $in: [3, 5] } } }, { $group: { _id: "$device.id", n: { $sum: 1 } } }],
      sql: `select id as _id, count(*)::integer as n from devices where list_has_any(codes, [3, 5]) group by all`,
    },
    "newest of each": {
      pipeline: [{ $sort: { "device.id": 1, time: -1 } }, { $group: { _id: "$device.id", t: { $first: "$env.t" }, state: { $first: "$state" } } }],
      sql: `select id as _id, arg_max(t, time) as t, arg_max(state, time) as state from devices group by all`,
    },
    "newest of a floor": {
      pipeline: [{ $match: { "device.place.floor": 3 } }, { $group: { _id: "$device.id", last: { $top: { sortBy: { time: -1 }, output: "$battery" } } } }],
      sql: `select id as _id, arg_max(battery, time) as last from devices where floor = 3 group by all`,
    },
    "fullest hours": {
      pipeline: [{ $group: { _id: { $hour: "$time" }, n: { $sum: "$count" } } }, { $sort: { n: -1 } }, { $limit: 3 }],
      sql: `select hour(make_timestamp(time * 1000)) as _id, sum(count)::double as n from devices group by all order by n desc limit 3`,
    },
    "rows above mean by lookup": {
      pipeline: [
        { $group: { _id: "$device.model", t: { $avg: "$env.t" } } },
        {
          $lookup: {
            from: "devices",
            let: { m: "$_id", t: "$t" },
            pipeline: [{ $match: { $expr: { $and: [{ $eq: ["$device.model", "$$m"] }, { $gt: ["$env.t", "$$t"] }] } } }, { $count: "n" }],
            as: "n",
          },
        },
        { $project: { n: { $first: "$n.n" } } },
      ],
      sql: `select model as _id, count(*)::integer as n from devices join (select model, avg(t) as mean from devices group by all) using (model) where t > mean group by all`,
    },
    "sort by count": { pipeline: [{ $sortByCount: "$state" }], sql: `select state as _id, count(*)::integer as count from devices group by all` },
    "bucket auto": {
      pipeline: [{ $bucketAuto: { groupBy: "$env.h", buckets: 5 } }, { $group: { _id: null, n: { $sum: "$count" } } }, { $project: { _id: 0 } }],
      sql: `select count(*)::integer as n from (select h, ntile(5) over (order by h) from devices)`,
    },
    correlation: {
      pipeline: [
        {
          $group: {
            _id: "$device.model",
            n: { $sum: 1 },
            x: { $sum: "$env.t" },
            y: { $sum: "$env.p" },
            xy: { $sum: { $multiply: ["$env.t", "$env.p"] } },
            xx: { $sum: { $pow: ["$env.t", 2] } },
          },
        },
        {
          $project: {
            slope: {
              $divide: [
                { $subtract: [{ $multiply: ["$n", "$xy"] }, { $multiply: ["$x", "$y"] }] },
                { $subtract: [{ $multiply: ["$n", "$xx"] }, { $multiply: ["$x", "$x"] }] },
              ],
            },
          },
        },
        { $project: { slope: { $round: ["$slope", 5] } } },
      ],
      sql: `select model as _id, round(regr_slope(p, t), 5) as slope from devices group by all`,
    },
    "days between": {
      pipeline: [{ $group: { _id: { $dateDiff: { startDate: new Date(START), endDate: "$time", unit: "hour" } }, n: { $sum: 1 } } }],
      sql: `select (time - ${START}) // ${HOUR_MS} as _id, count(*)::integer as n from devices group by all`,
    },
    "shifted by hours": {
      pipeline: [
        { $group: { _id: { $dateTrunc: { date: { $dateAdd: { startDate: "$time", unit: "hour", amount: 2 } }, unit: "day" } }, e: { $max: "$energy" } } },
      ],
      sql: `select (time + ${2 * HOUR_MS}) // ${DAY_MS} * ${DAY_MS} as _id, max(energy) as e from devices group by all`,
    },
    "fill gaps of hourly means": {
      pipeline: [
        { $match: { "device.place.building": "B3" } },
        { $group: { _id: { i: "$device.id", h: { $dateTrunc: { date: "$time", unit: "hour" } } }, t: { $avg: "$env.t" } } },
        { $project: { _id: 0, i: "$_id.i", h: "$_id.h", t: 1 } },
        { $densify: { field: "h", partitionByFields: ["i"], range: { step: 1, unit: "hour", bounds: "full" } } },
        { $fill: { partitionByFields: ["i"], sortBy: { h: 1 }, output: { t: { method: "locf" } } } },
        { $group: { _id: "$i", n: { $sum: 1 } } },
      ],
      sql: `select id as _id, 59 as n from (select distinct id from devices where building = 'B3')`,
    },
    "mean of a metadata array": {
      pipeline: [{ $match: { "device.tags": "z" } }, { $group: { _id: "$device.model", n: { $sum: 1 } } }],
      sql: `select model as _id, count(*)::integer as n from devices where id in (select id from devices where cast(substr(id, 5) as integer) % 3 = 2) group by all`,
    },
    comfort: {
      pipeline: [
        { $project: { c: { $and: [{ $gte: ["$env.t", 18] }, { $lte: ["$env.t", 24] }, { $lt: ["$env.h", 60] }] }, b: "$device.place.building" } },
        { $group: { _id: "$b", share: { $avg: { $cond: ["$c", 1, 0] } } } },
      ],
      sql: `select building as _id, avg(case when t >= 18 and t <= 24 and h < 60 then 1 else 0 end) as share from devices group by all`,
    },
    "dew point": {
      pipeline: [{ $group: { _id: "$device.model", d: { $avg: { $subtract: ["$env.t", { $divide: [{ $subtract: [100, "$env.h"] }, 5] }] } } } }],
      sql: `select model as _id, avg(t - (100 - h) / 5) as d from devices group by all`,
    },
    labels: {
      pipeline: [
        {
          $group: {
            _id: {
              $switch: {
                branches: [
                  { case: { $lt: ["$env.t", 15] }, then: "cold" },
                  { case: { $lt: ["$env.t", 22] }, then: "mild" },
                ],
                default: "warm",
              },
            },
            n: { $sum: 1 },
          },
        },
      ],
      sql: `select case when t < 15 then 'cold' when t < 22 then 'mild' else 'warm' end as _id, count(*)::integer as n from devices group by all`,
    },
    "last hundred of a building": {
      pipeline: [
        { $match: { "device.place.building": "B5" } },
        { $sort: { time: -1, "device.id": 1 } },
        { $limit: 100 },
        { $project: { _id: 0, time: 1, t: "$env.t", id: "$device.id" } },
      ],
      sql: `select time, t, id from devices where building = 'B5' order by time desc, id limit 100`,
      keys: ["time", "id"],
    },
    "page of faults": {
      pipeline: [
        { $match: { state: "fault" } },
        { $sort: { time: 1, "device.id": 1 } },
        { $skip: 200 },
        { $limit: 50 },
        { $project: { _id: 0, time: 1, battery: 1, id: "$device.id" } },
      ],
      sql: `select time, battery, id from devices where state = 'fault' order by time, id limit 50 offset 200`,
      keys: ["time", "id"],
    },
    "lowest battery of each": {
      pipeline: [{ $group: { _id: "$device.id", b: { $min: "$battery" } } }, { $match: { b: { $lt: 83 } } }],
      sql: `select id as _id, min(battery) as b from devices group by all having b < 83`,
    },
    "three warmest a building": {
      pipeline: [{ $group: { _id: "$device.place.building", w: { $topN: { n: 3, sortBy: { "env.t": -1, time: 1 }, output: "$env.t" } } } }, { $unwind: "$w" }],
      sql: `select building as _id, t as w from (select building, t, row_number() over (partition by building order by t desc, time) as r from devices) where r <= 3`,
      keys: ["_id", "w"],
    },
    "count by day text": {
      pipeline: [{ $group: { _id: { d: { $dateToString: { date: "$time", format: "%Y-%m-%d" } }, s: "$state" }, n: { $sum: 1 } } }],
      sql: `select strftime(make_timestamp(time * 1000), '%Y-%m-%d') as d, state as s, count(*)::integer as n from devices group by all`,
      keys: ["d", "s"],
    },
    "two series side by side": {
      pipeline: [
        { $match: { "device.id": { $in: ["dev-3", "dev-4"] } } },
        {
          $group: {
            _id: { $dateTrunc: { date: "$time", unit: "minute", binSize: 5 } },
            a: { $max: { $cond: [{ $eq: ["$device.id", "dev-3"] }, "$env.t", null] } },
            b: { $max: { $cond: [{ $eq: ["$device.id", "dev-4"] }, "$env.t", null] } },
          },
        },
      ],
      sql: `select time // ${5 * MINUTE_MS} * ${5 * MINUTE_MS} as _id, max(case when id = 'dev-3' then t end) as a, max(case when id = 'dev-4' then t end) as b from devices where id in ('dev-3', 'dev-4') group by all`,
    },
    stacked: {
      pipeline: [
        { $group: { _id: { h: { $dateTrunc: { date: "$time", unit: "hour" } }, s: "$state" }, n: { $sum: 1 } } },
        { $group: { _id: "$_id.h", all: { $push: { k: "$_id.s", v: "$n" } }, n: { $sum: "$n" } } },
        { $project: { n: 1, o: { $arrayToObject: "$all" } } },
        { $project: { n: 1, fault: "$o.fault" } },
      ],
      sql: `select time // ${HOUR_MS} * ${HOUR_MS} as _id, count(*)::integer as n, nullif(sum(case when state = 'fault' then 1 else 0 end), 0)::integer as fault from devices group by all`,
    },
    "first of each day": {
      pipeline: [{ $sort: { time: 1 } }, { $group: { _id: { i: "$device.id", d: { $dateTrunc: { date: "$time", unit: "day" } } }, e: { $first: "$energy" } } }],
      sql: `select id as i, time // ${DAY_MS} * ${DAY_MS} as d, arg_min(energy, time) as e from devices group by all`,
      keys: ["i", "d"],
    },
    "energy of each day": {
      pipeline: [
        { $group: { _id: { i: "$device.id", d: { $dateTrunc: { date: "$time", unit: "day" } } }, a: { $min: "$energy" }, b: { $max: "$energy" } } },
        { $group: { _id: "$_id.d", e: { $sum: { $subtract: ["$b", "$a"] } } } },
      ],
      sql: `select d as _id, sum(b - a) as e from (select id, time // ${DAY_MS} * ${DAY_MS} as d, min(energy) as a, max(energy) as b from devices group by all) group by all`,
    },
    "all columns of a device": {
      pipeline: [{ $match: { "device.id": "dev-77" } }, { $project: { _id: 0, codes: 0, device: 0 } }],
      sql: `select time, t, h, p, state, energy, battery, count from devices where id = 'dev-77'`,
      keys: ["time"],
    },
    "quantile by hour": {
      pipeline: [
        {
          $group: {
            _id: { $dateTrunc: { date: "$time", unit: "hour" } },
            q: { $percentile: { input: "$env.t", p: [0.9], method: "approximate" } },
            n: { $sum: 1 },
          },
        },
        { $project: { n: 1 } },
      ],
      sql: `select _id, n from (select time // ${HOUR_MS} * ${HOUR_MS} as _id, approx_quantile(t, 0.9) as q, count(*)::integer as n from devices group by all)`,
    },
    "union of two": {
      pipeline: [
        { $match: { state: "fault" } },
        { $project: { _id: 0, id: "$device.id", w: { $literal: "fault" } } },
        {
          $unionWith: { coll: "devices", pipeline: [{ $match: { battery: { $lt: 83 } } }, { $project: { _id: 0, id: "$device.id", w: { $literal: "low" } } }] },
        },
        { $group: { _id: { id: "$id", w: "$w" }, n: { $sum: 1 } } },
      ],
      sql: `select id, w, count(*)::integer as n from (select id, 'fault' as w from devices where state = 'fault' union all select id, 'low' as w from devices where battery < 83) group by all`,
      keys: ["id", "w"],
    },
  },
};

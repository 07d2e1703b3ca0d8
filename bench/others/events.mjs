// Events of an app: forty-five optional fields of which an event has about five, and 20,000 users with ten events each, so that series and buckets are small.

import { START, generator } from "../tsbs/random.mjs";

const USERS = 20_000;
const ROWS = 200_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;

const NUMBERS = Array.from({ length: 15 }, (_, n) => `n${n}`);
const COUNTS = Array.from({ length: 10 }, (_, n) => `c${n}`);
const TEXTS = Array.from({ length: 10 }, (_, n) => `t${n}`);
const FLAGS = Array.from({ length: 5 }, (_, n) => `b${n}`);
const DATES = Array.from({ length: 5 }, (_, n) => `d${n}`);
const ALL = [...NUMBERS, ...COUNTS, ...TEXTS, ...FLAGS, ...DATES];

export const events = {
  name: "events",
  meta: "user",
  rows() {
    const random = generator("events");
    const users = Array.from({ length: USERS }, (_, n) => ({ id: `user-${n}`, country: random.of(["de", "fr", "us", "us", "in", "br"]), signup: new Date(START - random.below(60) * DAY_MS), beta: random.next() < 0.1 }));
    const value = (name, time) => {
      switch (name[0]) {
        case "n": return Math.round(random.normal() * 1000) / 10;
        case "c": return random.below(name === "c0" ? 5 : 10_000);
        case "t": return name === "t0" ? `word ${random.below(20_000)}` : `value ${random.below(1 + Number(name[1]) * 20)}`;
        case "b": return random.next() < 0.5;
        default: return new Date(time + random.below(5 * DAY_MS));
      }
    };
    return Array.from({ length: ROWS }, (_, row) => {
      const time = START + Math.floor((row * 14 * DAY_MS) / ROWS) + random.below(3000);
      const event = { time: new Date(time), user: users[random.below(USERS)], kind: random.of(["open", "view", "view", "view", "click", "click", "buy", "close"]) };
      for (let k = 0; k < 5; k++) {
        const name = ALL[random.below(ALL.length)];
        event[name] = value(name, time);
      }
      return event;
    });
  },
  columns: {
    time: "bigint", id: "varchar", country: "varchar", signup: "bigint", beta: "boolean", kind: "varchar",
    ...Object.fromEntries([...NUMBERS.map((c) => [c, "double"]), ...COUNTS.map((c) => [c, "integer"]), ...TEXTS.map((c) => [c, "varchar"]), ...FLAGS.map((c) => [c, "boolean"]), ...DATES.map((c) => [c, "bigint"])]),
  },
  queries: {
    "events by kind and day": {
      pipeline: [{ $group: { _id: { k: "$kind", d: { $dateTrunc: { date: "$time", unit: "day" } } }, n: { $sum: 1 } } }],
      sql: `select kind as k, time // ${DAY_MS} * ${DAY_MS} as d, count(*)::integer as n from events group by all`, keys: ["k", "d"],
    },
    "daily active users": {
      pipeline: [{ $group: { _id: { d: { $dateTrunc: { date: "$time", unit: "day" } }, u: "$user.id" } } }, { $group: { _id: "$_id.d", n: { $sum: 1 } } }],
      sql: `select time // ${DAY_MS} * ${DAY_MS} as _id, count(distinct id)::integer as n from events group by all`,
    },
    "weekly active users": {
      pipeline: [{ $group: { _id: { w: { $dateToString: { date: "$time", format: "%G-W%V" } }, c: "$user.country" }, u: { $addToSet: "$user.id" } } }, { $project: { n: { $size: "$u" } } }],
      sql: `select strftime(make_timestamp(time * 1000), '%G-W%V') as w, country as c, count(distinct id)::integer as n from events group by all`, keys: ["w", "c"],
    },
    "cohorts by signup week": {
      pipeline: [{ $group: { _id: { s: { $dateTrunc: { date: "$user.signup", unit: "week", startOfWeek: "monday" } }, d: { $dateDiff: { startDate: "$user.signup", endDate: "$time", unit: "day" } } }, u: { $addToSet: "$user.id" } } }, { $project: { n: { $size: "$u" } } }],
      sql: `select (signup - ${4 * DAY_MS}) // ${WEEK_MS} * ${WEEK_MS} + ${4 * DAY_MS} as s, time // ${DAY_MS} - signup // ${DAY_MS} as d, count(distinct id)::integer as n from events group by all`, keys: ["s", "d"],
    },
    "mean of a sparse field": {
      pipeline: [{ $group: { _id: "$user.country", a: { $avg: "$n3" }, m: { $max: "$n3" } } }],
      sql: `select country as _id, avg(n3) as a, max(n3) as m from events group by all`,
    },
    "means of ten sparse fields": {
      pipeline: [{ $group: { _id: "$kind", ...Object.fromEntries(NUMBERS.slice(0, 10).map((c) => [c, { $avg: `$${c}` }])) } }],
      sql: `select kind as _id, ${NUMBERS.slice(0, 10).map((c) => `avg(${c}) as ${c}`)} from events group by all`,
    },
    "presence of each field": {
      pipeline: [{ $group: { _id: null, ...Object.fromEntries(ALL.map((c) => [c, { $sum: { $cond: [{ $eq: [{ $type: `$${c}` }, "missing"] }, 0, 1] } }])) } }, { $project: { _id: 0 } }],
      sql: `select ${ALL.map((c) => `count(${c})::integer as ${c}`)} from events`,
    },
    "rows with two fields": {
      pipeline: [{ $match: { c3: { $exists: true }, n1: { $exists: true } } }, { $project: { _id: 0, time: 1, c3: 1, n1: 1, id: "$user.id" } }],
      sql: `select time, c3, n1, id from events where c3 is not null and n1 is not null`, keys: ["time", "id", "c3"],
    },
    "either field": {
      pipeline: [{ $match: { $or: [{ c1: { $gt: 9000 } }, { c2: { $lt: 500 } }, { t3: "value 7" }] } }, { $group: { _id: "$kind", n: { $sum: 1 } } }],
      sql: `select kind as _id, count(*)::integer as n from events where c1 > 9000 or c2 < 500 or t3 = 'value 7' group by all`,
    },
    "first known of three": {
      pipeline: [{ $group: { _id: { $ifNull: ["$t2", "$t3", "$t4", "none"] }, n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 20 }],
      sql: `select coalesce(t2, t3, t4, 'none') as _id, count(*)::integer as n from events group by all order by n desc, 1 limit 20`,
    },
    "frequent words": {
      pipeline: [{ $match: { t0: { $type: "string" } } }, { $sortByCount: "$t0" }, { $match: { count: { $gt: 4 } } }],
      sql: `select t0 as _id, count(*)::integer as count from events where t0 is not null group by all having count > 4`,
    },
    "sum of two optional": {
      pipeline: [{ $group: { _id: "$user.country", s: { $sum: { $add: [{ $ifNull: ["$c4", 0] }, { $ifNull: ["$c5", 0] }] } } } }],
      sql: `select country as _id, sum(coalesce(c4, 0) + coalesce(c5, 0))::double as s from events group by all`,
    },
    "events of each user": {
      pipeline: [{ $group: { _id: "$user.id", n: { $sum: 1 }, first: { $min: "$time" }, last: { $max: "$time" } } }, { $group: { _id: "$n", users: { $sum: 1 }, span: { $avg: { $subtract: ["$last", "$first"] } } } }],
      sql: `select n::integer as _id, count(*)::integer as users, avg(last - first) as span from (select count(*) as n, min(time) as first, max(time) as last from events group by id) group by all`,
    },
    "latest kind of each user": {
      pipeline: [{ $sort: { time: 1 } }, { $group: { _id: "$user.id", k: { $last: "$kind" } } }, { $sortByCount: "$k" }],
      sql: `select k as _id, count(*)::integer as count from (select arg_max(kind, time) as k from events group by id) group by all`,
    },
    "latest known value of each": {
      pipeline: [{ $match: { c6: { $exists: true } } }, { $group: { _id: "$user.id", c: { $top: { sortBy: { time: -1 }, output: "$c6" } } } }, { $group: { _id: null, s: { $sum: "$c" } } }, { $project: { _id: 0 } }],
      sql: `select sum(c)::double as s from (select arg_max(c6, time) as c from events where c6 is not null group by id)`,
    },
    "funnel": {
      pipeline: [{ $group: { _id: "$user.id", o: { $min: { $cond: [{ $eq: ["$kind", "open"] }, "$time", null] } }, b: { $max: { $cond: [{ $eq: ["$kind", "buy"] }, "$time", null] } } } }, { $match: { $expr: { $and: [{ $ne: ["$o", null] }, { $gt: ["$b", "$o"] }] } } }, { $count: "n" }],
      sql: `select count(*)::integer as n from (select min(case when kind = 'open' then time end) as o, max(case when kind = 'buy' then time end) as b from events group by id) where o is not null and b > o`,
    },
    "hours to the next event": {
      pipeline: [{ $setWindowFields: { partitionBy: "$user.id", sortBy: { time: 1 }, output: { next: { $shift: { output: "$time", by: 1 } } } } }, { $group: { _id: "$kind", h: { $avg: { $divide: [{ $subtract: ["$next", "$time"] }, HOUR_MS] } } } }],
      sql: `select kind as _id, avg((next - time) / ${HOUR_MS}) as h from (select kind, time, lead(time) over (partition by id order by time) as next from events) group by all`,
    },
    "running count of buys": {
      pipeline: [{ $match: { kind: "buy" } }, { $setWindowFields: { partitionBy: "$user.country", sortBy: { time: 1 }, output: { n: { $sum: 1, window: { documents: ["unbounded", "current"] } } } } }, { $match: { n: { $mod: [1000, 0] } } }, { $project: { _id: 0, time: 1, n: 1, c: "$user.country" } }],
      sql: `select time, n::integer as n, c from (select time, country as c, count(*) over (partition by country order by time rows unbounded preceding) as n from events where kind = 'buy') where n % 1000 = 0`, keys: ["time", "c"],
    },
    "sequence of kinds": {
      pipeline: [{ $sort: { time: 1 } }, { $group: { _id: "$user.id", k: { $push: "$kind" } } }, { $project: { p: { $reduce: { input: { $slice: ["$k", 3] }, initialValue: "", in: { $concat: ["$$value", "/", "$$this"] } } } } }, { $sortByCount: "$p" }, { $limit: 10 }],
      sql: `select '/' || array_to_string(k[1:3], '/') as _id, count(*)::integer as count from (select list(kind order by time) as k from events group by id) group by all order by count desc limit 10`,
    },
    "one user": {
      pipeline: [{ $match: { "user.id": "user-777" } }, { $sort: { time: 1 } }, { $project: { _id: 0, time: 1, kind: 1, n1: { $ifNull: ["$n1", null] }, c1: { $ifNull: ["$c1", null] } } }],
      sql: `select time, kind, n1, c1 from events where id = 'user-777' order by time`, keys: ["time"],
    },
    "three hundred users": {
      pipeline: [{ $match: { "user.id": { $in: Array.from({ length: 300 }, (_, n) => `user-${n * 61}`) } } }, { $group: { _id: "$kind", n: { $sum: 1 } } }],
      sql: `select kind as _id, count(*)::integer as n from events where id in (${Array.from({ length: 300 }, (_, n) => `'user-${n * 61}'`)}) group by all`,
    },
    "beta users a day": {
      pipeline: [{ $match: { "user.beta": true } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "day" } }, n: { $sum: 1 }, u: { $addToSet: "$user.id" } } }, { $project: { n: 1, u: { $size: "$u" } } }],
      sql: `select time // ${DAY_MS} * ${DAY_MS} as _id, count(*)::integer as n, count(distinct id)::integer as u from events where beta group by all`,
    },
    "waiting by a date": {
      pipeline: [{ $match: { d2: { $exists: true } } }, { $group: { _id: { $dateDiff: { startDate: "$time", endDate: "$d2", unit: "hour" } }, n: { $sum: 1 } } }],
      sql: `select d2 // ${HOUR_MS} - time // ${HOUR_MS} as _id, count(*)::integer as n from events where d2 is not null group by all`,
    },
    "due on a day": {
      pipeline: [{ $match: { d1: { $gte: new Date(START + 3 * DAY_MS), $lt: new Date(START + 4 * DAY_MS) } } }, { $sort: { d1: 1 } }, { $limit: 100 }, { $project: { _id: 0, d1: 1, id: "$user.id" } }],
      sql: `select d1, id from events where d1 >= ${START + 3 * DAY_MS} and d1 < ${START + 4 * DAY_MS} order by d1 limit 100`, keys: ["d1", "id"],
    },
    "largest of a sparse field": {
      pipeline: [{ $sort: { n7: -1, time: 1 } }, { $limit: 25 }, { $project: { _id: 0, time: 1, n7: 1 } }],
      sql: `select time, n7 from events order by n7 desc nulls last, time limit 25`, keys: ["time"],
    },
    "flags by country": {
      pipeline: [{ $group: { _id: "$user.country", y: { $sum: { $cond: ["$b1", 1, 0] } }, n: { $sum: { $cond: [{ $eq: ["$b1", false] }, 1, 0] } } } }],
      sql: `select country as _id, sum(case when b1 then 1 else 0 end)::double as y, sum(case when b1 = false then 1 else 0 end)::double as n from events group by all`,
    },
    "three-valued flags": {
      pipeline: [{ $group: { _id: { a: "$b2", b: "$b3" }, n: { $sum: 1 } } }, { $project: { _id: 0, n: 1, a: { $ifNull: [{ $toString: "$_id.a" }, "-"] }, b: { $ifNull: [{ $toString: "$_id.b" }, "-"] } } }],
      sql: `select coalesce(b2::varchar, '-') as a, coalesce(b3::varchar, '-') as b, count(*)::integer as n from events group by all`, keys: ["a", "b"],
    },
    "buckets of a number": {
      pipeline: [{ $match: { n2: { $type: "number" } } }, { $bucket: { groupBy: "$n2", boundaries: [-1000, -100, -50, 0, 50, 100, 1000], output: { n: { $sum: 1 }, c: { $addToSet: "$user.country" } } } }, { $project: { n: 1, c: { $size: "$c" } } }],
      sql: `select case when n2 < -100 then -1000 when n2 < -50 then -100 when n2 < 0 then -50 when n2 < 50 then 0 when n2 < 100 then 50 else 100 end as _id, count(*)::integer as n, count(distinct country)::integer as c from events where n2 is not null group by all`,
    },
    "quantiles of two": {
      pipeline: [{ $group: { _id: "$kind", a: { $median: { input: "$n0", method: "approximate" } } } }, { $project: { ok: { $lt: [{ $abs: "$a" }, 50] } } }],
      sql: `select kind as _id, abs(median(n0)) < 50 as ok from events group by all`,
    },
    "fields as rows": {
      pipeline: [{ $project: { f: { $objectToArray: "$$ROOT" } } }, { $unwind: "$f" }, { $match: { "f.k": /^n/ } }, { $group: { _id: "$f.k", v: { $avg: "$f.v" } } }],
      sql: `select k as _id, avg(v) as v from (unpivot (select ${NUMBERS} from events) on ${NUMBERS} into name k value v) group by all`,
    },
    "number of fields": {
      pipeline: [{ $project: { n: { $size: { $objectToArray: "$$ROOT" } } } }, { $group: { _id: "$n", c: { $sum: 1 } } }],
      sql: `select (3 + ${ALL.map((c) => `(${c} is not null)::integer`).join(" + ")})::integer as _id, count(*)::integer as c from events group by all`,
    },
    "hourly with gaps filled": {
      pipeline: [{ $match: { kind: "buy", "user.country": "fr", n4: { $exists: true } } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "hour" } }, v: { $avg: "$n4" } } }, { $densify: { field: "_id", range: { step: 1, unit: "hour", bounds: [new Date(START), new Date(START + 14 * DAY_MS)] } } }, { $fill: { sortBy: { _id: 1 }, output: { v: { method: "locf" } } } }, { $group: { _id: { $dateTrunc: { date: "$_id", unit: "day" } }, n: { $sum: 1 } } }],
      sql: `select t // ${DAY_MS} * ${DAY_MS} as _id, count(*)::integer as n from (select unnest(range(${START}, ${START + 14 * DAY_MS}, ${HOUR_MS})) as t) group by all`,
    },
    "pairs of fields": {
      pipeline: [{ $match: { c0: { $exists: true }, t1: { $exists: true } } }, { $group: { _id: { c: "$c0", t: "$t1" }, n: { $sum: 1 } } }],
      sql: `select c0 as c, t1 as t, count(*)::integer as n from events where c0 is not null and t1 is not null group by all`, keys: ["c", "t"],
    },
    "newest hundred": {
      pipeline: [{ $sort: { time: -1 } }, { $limit: 100 }, { $project: { _id: 0, time: 1, kind: 1, id: "$user.id" } }],
      sql: `select time, kind, id from events order by time desc limit 100`, keys: ["time", "id"],
    },
    "most active in the last day": {
      pipeline: [{ $match: { time: { $gte: new Date(START + 13 * DAY_MS) } } }, { $group: { _id: "$user.id", n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 10 }],
      sql: `select id as _id, count(*)::integer as n from events where time >= ${START + 13 * DAY_MS} group by all order by n desc, 1 limit 10`,
    },
    "two kinds side by side by union": {
      pipeline: [{ $match: { kind: "open" } }, { $group: { _id: { $hour: "$time" }, n: { $sum: 1 } } }, { $unionWith: { coll: "events", pipeline: [{ $match: { kind: "close" } }, { $group: { _id: { $hour: "$time" }, m: { $sum: 1 } } }] } }, { $group: { _id: "$_id", n: { $max: "$n" }, m: { $max: "$m" } } }],
      sql: `select hour(make_timestamp(time * 1000)) as _id, sum(case when kind = 'open' then 1 else 0 end)::double as n, sum(case when kind = 'close' then 1 else 0 end)::double as m from events group by all`,
    },
    "users who never bought": {
      pipeline: [{ $group: { _id: "$user.id", c: { $first: "$user.country" }, b: { $max: { $eq: ["$kind", "buy"] } } } }, { $match: { b: false } }, { $sortByCount: "$c" }],
      sql: `select c as _id, count(*)::integer as count from (select any_value(country) as c, max((kind = 'buy')::integer) as b from events group by id) where b = 0 group by all`,
    },
    "by text that ends": {
      pipeline: [{ $match: { t9: /7$/ } }, { $group: { _id: "$t9", n: { $sum: 1 } } }],
      sql: `select t9 as _id, count(*)::integer as n from events where t9 like '%7' group by all`,
    },
    "by number in a text": {
      pipeline: [{ $match: { t8: { $exists: true } } }, { $group: { _id: { $toInt: { $arrayElemAt: [{ $split: ["$t8", " "] }, 1] } }, n: { $sum: 1 } } }],
      sql: `select split_part(t8, ' ', 2)::integer as _id, count(*)::integer as n from events where t8 is not null group by all`,
    },
    "counts of signups a month": {
      pipeline: [{ $group: { _id: { y: { $year: "$user.signup" }, m: { $month: "$user.signup" } }, n: { $sum: 1 } } }],
      sql: `select year(make_timestamp(signup * 1000)) as y, month(make_timestamp(signup * 1000)) as m, count(*)::integer as n from events group by all`, keys: ["y", "m"],
    },
    "greatest of any": {
      pipeline: [{ $group: { _id: "$kind", m: { $max: { $max: NUMBERS.map((c) => `$${c}`) } } } }],
      sql: `select kind as _id, max(greatest(${NUMBERS})) as m from events group by all`,
    },
    "whole rows of a word": {
      pipeline: [{ $match: { t5: "value 13" } }, { $sort: { time: 1 } }, { $limit: 200 }, { $project: { _id: 0, time: 1, kind: 1, ...Object.fromEntries(COUNTS.map((c) => [c, { $ifNull: [`$${c}`, null] }])) } }],
      sql: `select time, kind, ${COUNTS} from events where t5 = 'value 13' order by time limit 200`, keys: ["time"],
    },
  },
};

// Machines of a plant: eighty numbers a row, 64-bit counters that begin again, texts of states, alarms, and the dates of jobs.

import { Long } from "../../js/node_modules/bson/lib/bson.node.mjs";
import { START, generator } from "../tsbs/random.mjs";

const MACHINES = 40;
const ROUNDS = 2500;
const STEP_MS = 30_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CHANNELS = Array.from({ length: 60 }, (_, n) => `ch${n}`);
const INTS = Array.from({ length: 20 }, (_, n) => `i${n}`);
const COUNTERS = ["parts", "joules", "pulses"];
const ALARMS = Array.from({ length: 6 }, (_, n) => `alarm${n}`);

export const plants = {
  name: "plants",
  meta: "machine",
  rows() {
    const random = generator("plants");
    const machines = Array.from({ length: MACHINES }, (_, n) => ({
      machine: { id: n, line: `line ${n % 5}`, type: ["press", "mill", "oven", "robot"][n % 4] },
      ch: CHANNELS.map(() => random.next() * 100),
      counters: [random.below(1e6), random.below(1e9), 2 ** 40],
      state: "idle", job: undefined, alarms: ALARMS.map(() => false),
    }));
    const all = [];
    for (let round = 0; round < ROUNDS; round++)
      for (const m of machines) {
        const time = START + round * STEP_MS + random.below(900);
        if (random.next() < 0.02) m.state = random.of(["idle", "running", "running", "fault", "setup"]);
        if (!m.job || random.next() < 0.01) m.job = { number: `J${random.below(1e6)}`, start: time - random.below(HOUR_MS), end: time + 10 * MINUTE_MS + random.below(5 * HOUR_MS), product: `P-${random.below(300)}` };
        m.counters[0] = random.next() < 0.001 ? 0 : m.counters[0] + random.below(5);
        m.counters[1] = (m.counters[1] + random.below(90_000)) % 2 ** 31;
        m.counters[2] += random.below(1000);
        const row = { time: new Date(time), machine: m.machine, state: m.state, job: m.job.number, product: m.job.product, start: new Date(m.job.start), end: new Date(m.job.end) };
        CHANNELS.forEach((name, n) => {
          m.ch[n] += random.normal() * 0.3;
          row[name] = n % 3 === 0 ? m.ch[n] : Math.round(m.ch[n] * 100) / 100;
        });
        INTS.forEach((name, n) => (row[name] = n % 4 === 0 ? random.below(3) : random.below(1000 * (n + 1))));
        COUNTERS.forEach((name, n) => (row[name] = Long.fromNumber(m.counters[n])));
        ALARMS.forEach((name, n) => {
          if (random.next() < 0.01) m.alarms[n] = !m.alarms[n];
          row[name] = m.alarms[n];
        });
        all.push(row);
      }
    return all;
  },
  columns: {
    time: "bigint", id: "integer", line: "varchar", type: "varchar", state: "varchar", job: "varchar", product: "varchar", start_: "bigint", end_: "bigint",
    ...Object.fromEntries([...CHANNELS.map((c) => [c, "double"]), ...INTS.map((c) => [c, "integer"]), ...COUNTERS.map((c) => [c, "bigint"]), ...ALARMS.map((c) => [c, "boolean"])]),
  },
  cell: (row, c) => (c === "start_" ? row.start : c === "end_" ? row.end : (row[c] ?? row.machine[c])?.valueOf?.() instanceof Object ? row[c].toString() : (row[c] ?? row.machine[c])),
  queries: {
    "means of all channels by machine": {
      pipeline: [{ $group: { _id: "$machine.id", ...Object.fromEntries(CHANNELS.map((c) => [c, { $avg: `$${c}` }])) } }],
      sql: `select id as _id, ${CHANNELS.map((c) => `avg(${c}) as ${c}`)} from plants group by all`,
    },
    "three channels by hour": {
      pipeline: [{ $group: { _id: { l: "$machine.line", h: { $dateTrunc: { date: "$time", unit: "hour" } } }, a: { $avg: "$ch1" }, b: { $min: "$ch2" }, c: { $max: "$ch3" } } }],
      sql: `select line as l, time // ${HOUR_MS} * ${HOUR_MS} as h, avg(ch1) as a, min(ch2) as b, max(ch3) as c from plants group by all`, keys: ["l", "h"],
    },
    "parts made, with resets": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { before: { $shift: { output: "$parts", by: -1 } } } } },
        { $group: { _id: "$machine.id", n: { $sum: { $cond: [{ $eq: ["$before", null] }, 0, { $cond: [{ $gte: ["$parts", "$before"] }, { $subtract: ["$parts", "$before"] }, "$parts"] }] } } } },
      ],
      sql: `select id as _id, sum(case when b is null then 0 when parts >= b then parts - b else parts end)::double as n from (select id, parts, lag(parts) over (partition by id order by time) as b from plants) group by all`,
    },
    "rate of pulses": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { r: { $derivative: { input: "$pulses", unit: "second" }, window: { documents: [-1, 0] } } } } },
        { $group: { _id: "$machine.type", r: { $avg: "$r" }, m: { $max: "$r" } } },
      ],
      sql: `select type as _id, avg(r) as r, max(r) as m from (select type, (pulses - lag(pulses) over w) / ((time - lag(time) over w) / 1000) as r from plants window w as (partition by id order by time)) group by all`,
    },
    "wrapped joules by hour": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { b: { $shift: { output: "$joules", by: -1 } } } } },
        { $group: { _id: { $dateTrunc: { date: "$time", unit: "hour" } }, j: { $sum: { $mod: [{ $add: [{ $subtract: ["$joules", { $ifNull: ["$b", "$joules"] }] }, Long.fromNumber(2 ** 31)] }, Long.fromNumber(2 ** 31)] } } } },
      ],
      sql: `select time // ${HOUR_MS} * ${HOUR_MS} as _id, sum((joules - coalesce(b, joules) + 2147483648) % 2147483648)::double as j from (select time, joules, lag(joules) over (partition by id order by time) as b from plants) group by all`,
    },
    "time in each state": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { next: { $shift: { output: "$time", by: 1 } } } } },
        { $match: { next: { $ne: null } } },
        { $group: { _id: { s: "$state", t: "$machine.type" }, s: { $sum: { $dateDiff: { startDate: "$time", endDate: "$next", unit: "second" } } } } },
        { $project: { _id: 0, st: "$_id.s", t: "$_id.t", s: 1 } },
      ],
      sql: `select state as st, type as t, sum(next // 1000 - time // 1000)::double as s from (select state, type, time, lead(time) over (partition by id order by time) as next from plants) where next is not null group by all`, keys: ["st", "t"],
    },
    "changes of state a day": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { b: { $shift: { output: "$state", by: -1 } } } } },
        { $match: { $expr: { $ne: ["$state", "$b"] } } },
        { $group: { _id: { i: "$machine.id", d: { $dateToString: { date: "$time", format: "%Y-%m-%d" } } }, n: { $sum: 1 } } },
      ],
      sql: `select id as i, strftime(make_timestamp(time * 1000), '%Y-%m-%d') as d, count(*)::integer as n from (select id, time, state, lag(state) over (partition by id order by time) as b from plants) where state is distinct from b group by all`, keys: ["i", "d"],
    },
    "longest run of a fault": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { b: { $shift: { output: "$state", by: -1 } } } } },
        { $set: { c: { $cond: [{ $eq: ["$state", "$b"] }, 0, 1] } } },
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { run: { $sum: "$c", window: { documents: ["unbounded", "current"] } } } } },
        { $match: { state: "fault" } },
        { $group: { _id: { i: "$machine.id", r: "$run" }, a: { $min: "$time" }, z: { $max: "$time" } } },
        { $group: { _id: "$_id.i", ms: { $max: { $subtract: ["$z", "$a"] } } } },
      ],
      sql: `select id as _id, max(ms) as ms from (select id, run, max(time) - min(time) as ms from (select id, time, state, sum(c) over (partition by id order by time rows unbounded preceding) as run from (select id, time, state, case when state = lag(state) over (partition by id order by time) then 0 else 1 end as c from plants)) where state = 'fault' group by id, run) group by id`,
    },
    "jobs and their lengths": {
      pipeline: [{ $group: { _id: "$job", p: { $first: "$product" }, s: { $first: "$start" }, e: { $first: "$end" }, n: { $sum: 1 } } }, { $group: { _id: "$p", m: { $avg: { $dateDiff: { startDate: "$s", endDate: "$e", unit: "minute" } } }, n: { $sum: 1 } } }],
      sql: `select p as _id, avg(e // ${MINUTE_MS} - s // ${MINUTE_MS}) as m, count(*)::integer as n from (select job, any_value(product) as p, any_value(start_) as s, any_value(end_) as e from plants group by job) group by all`,
    },
    "minutes until the end": {
      pipeline: [{ $group: { _id: "$machine.line", m: { $avg: { $divide: [{ $subtract: ["$end", "$time"] }, MINUTE_MS] } }, late: { $sum: { $cond: [{ $gt: ["$time", "$end"] }, 1, 0] } } } }],
      sql: `select line as _id, avg((end_ - time) / ${MINUTE_MS}) as m, sum(case when time > end_ then 1 else 0 end)::double as late from plants group by all`,
    },
    "rows in overdue jobs": {
      pipeline: [{ $match: { $expr: { $gt: ["$time", "$end"] } } }, { $sortByCount: "$job" }, { $limit: 10 }, { $project: { count: 1, _id: 0 } }],
      sql: `select count(*)::integer as count from plants where time > end_ group by job order by count desc limit 10`, keys: ["count"],
    },
    "jobs that began within an hour": {
      pipeline: [{ $match: { start: { $gte: new Date(START + 5 * HOUR_MS), $lt: new Date(START + 6 * HOUR_MS) } } }, { $group: { _id: "$job", n: { $sum: 1 } } }],
      sql: `select job as _id, count(*)::integer as n from plants where start_ >= ${START + 5 * HOUR_MS} and start_ < ${START + 6 * HOUR_MS} group by all`,
    },
    "jobs by hour of start": {
      pipeline: [{ $group: { _id: { $hour: "$start" }, n: { $sum: 1 }, p: { $avg: "$ch5" } } }],
      sql: `select hour(make_timestamp(start_ * 1000)) as _id, count(*)::integer as n, avg(ch5) as p from plants group by all`,
    },
    "any alarm": {
      pipeline: [{ $match: { $or: ALARMS.map((c) => ({ [c]: true })) } }, { $group: { _id: "$machine.id", n: { $sum: 1 } } }],
      sql: `select id as _id, count(*)::integer as n from plants where ${ALARMS.join(" or ")} group by all`,
    },
    "number of alarms": {
      pipeline: [{ $group: { _id: { $sum: ALARMS.map((c) => ({ $cond: [`$${c}`, 1, 0] })) }, n: { $sum: 1 } } }],
      sql: `select (${ALARMS.map((c) => `${c}::integer`).join(" + ")})::integer as _id, count(*)::integer as n from plants group by all`,
    },
    "combinations of alarms": {
      pipeline: [{ $group: { _id: Object.fromEntries(ALARMS.map((c) => [c, `$${c}`])), n: { $sum: 1 } } }],
      sql: `select ${ALARMS}, count(*)::integer as n from plants group by all`, keys: ALARMS,
    },
    "alarms that were raised": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: Object.fromEntries(ALARMS.map((c) => [`p_${c}`, { $shift: { output: `$${c}`, by: -1, default: false } }])) } },
        { $group: { _id: "$machine.type", ...Object.fromEntries(ALARMS.map((c) => [c, { $sum: { $cond: [{ $and: [`$${c}`, { $not: [`$p_${c}`] }] }, 1, 0] } }])) } },
      ],
      sql: `select type as _id, ${ALARMS.map((c) => `sum(case when ${c} and not p_${c} then 1 else 0 end)::double as ${c}`)} from (select type, ${ALARMS.map((c) => `${c}, lag(${c}, 1, false) over w as p_${c}`)} from plants window w as (partition by id order by time)) group by all`,
    },
    "latest row of each": {
      pipeline: [{ $sort: { time: -1 } }, { $group: { _id: "$machine.id", s: { $first: "$state" }, j: { $first: "$job" }, c: { $first: "$ch0" }, p: { $first: "$parts" } } }],
      sql: `select id as _id, arg_max(state, time) as s, arg_max(job, time) as j, arg_max(ch0, time) as c, arg_max(parts, time) as p from plants group by all`,
    },
    "latest whole row of each": {
      pipeline: [{ $group: { _id: "$machine.id", r: { $top: { sortBy: { time: -1 }, output: "$$ROOT" } } } }, { $project: { s: "$r.state", c: "$r.ch7", e: "$r.end" } }],
      sql: `select id as _id, arg_max(state, time) as s, arg_max(ch7, time) as c, arg_max(end_, time) as e from plants group by all`,
    },
    "limits of six channels": {
      pipeline: [{ $match: { $or: CHANNELS.slice(0, 6).flatMap((c) => [{ [c]: { $lt: -5 } }, { [c]: { $gt: 105 } }]) } }, { $group: { _id: "$machine.id", n: { $sum: 1 } } }],
      sql: `select id as _id, count(*)::integer as n from plants where ${CHANNELS.slice(0, 6).map((c) => `${c} < -5 or ${c} > 105`).join(" or ")} group by all`,
    },
    "mean and deviation": {
      pipeline: [{ $group: { _id: "$machine.type", ...Object.fromEntries(CHANNELS.slice(10, 20).map((c) => [c, { $stdDevSamp: `$${c}` }])) } }],
      sql: `select type as _id, ${CHANNELS.slice(10, 20).map((c) => `stddev_samp(${c}) as ${c}`)} from plants group by all`,
    },
    "moving mean of twenty": {
      pipeline: [{ $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { a: { $avg: "$ch4", window: { documents: [-19, 0] } }, m: { $max: "$ch4", window: { range: [-10, 0], unit: "minute" } } } } }, { $group: { _id: "$machine.line", a: { $max: "$a" }, m: { $avg: "$m" } } }],
      sql: `select line as _id, max(a) as a, avg(m) as m from (select line, avg(ch4) over (partition by id order by time rows between 19 preceding and current row) as a, max(ch4) over (partition by id order by time range between ${10 * MINUTE_MS} preceding and current row) as m from plants) group by all`,
    },
    "outliers": {
      pipeline: [{ $setWindowFields: { partitionBy: "$machine.id", output: { a: { $avg: "$ch6" }, d: { $stdDevPop: "$ch6" } } } }, { $match: { $expr: { $gt: [{ $abs: { $subtract: ["$ch6", "$a"] } }, { $multiply: [2, "$d"] }] } } }, { $group: { _id: "$machine.id", n: { $sum: 1 } } }],
      sql: `select id as _id, count(*)::integer as n from (select id, ch6, avg(ch6) over (partition by id) as a, stddev_pop(ch6) over (partition by id) as d from plants) where abs(ch6 - a) > 2 * d group by all`,
    },
    "oee": {
      pipeline: [{ $group: { _id: "$machine.id", n: { $sum: 1 }, run: { $sum: { $cond: [{ $eq: ["$state", "running"] }, 1, 0] } }, a: { $min: "$pulses" }, z: { $max: "$pulses" } } }, { $project: { share: { $divide: ["$run", "$n"] }, pulses: { $toDouble: { $subtract: ["$z", "$a"] } } } }],
      sql: `select id as _id, sum(case when state = 'running' then 1 else 0 end) / count(*) as share, (max(pulses) - min(pulses))::double as pulses from plants group by all`,
    },
    "difference of two machines": {
      pipeline: [{ $match: { "machine.id": { $in: [3, 4] } } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "minute" } }, a: { $avg: { $cond: [{ $eq: ["$machine.id", 3] }, "$ch8", "$$REMOVE"] } }, b: { $avg: { $cond: [{ $eq: ["$machine.id", 4] }, "$ch8", "$$REMOVE"] } } } }, { $project: { d: { $subtract: ["$a", "$b"] } } }],
      sql: `select time // ${MINUTE_MS} * ${MINUTE_MS} as _id, avg(case when id = 3 then ch8 end) - avg(case when id = 4 then ch8 end) as d from plants where id in (3, 4) group by all`,
    },
    "join of two machines": {
      pipeline: [{ $match: { "machine.id": 7 } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "minute" } }, a: { $avg: "$ch8" } } }, { $lookup: { from: "plants", let: { m: "$_id" }, pipeline: [{ $match: { "machine.id": 8 } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "minute" } }, b: { $avg: "$ch8" } } }, { $match: { $expr: { $eq: ["$_id", "$$m"] } } }], as: "o" } }, { $project: { d: { $subtract: ["$a", { $first: "$o.b" }] } } }],
      sql: `select m as _id, a - b as d from (select time // ${MINUTE_MS} * ${MINUTE_MS} as m, avg(ch8) as a from plants where id = 7 group by 1) join (select time // ${MINUTE_MS} * ${MINUTE_MS} as m, avg(ch8) as b from plants where id = 8 group by 1) using (m)`,
    },
    "histogram of a channel": {
      pipeline: [{ $bucketAuto: { groupBy: "$ch9", buckets: 10, output: { n: { $sum: 1 }, x: { $avg: "$ch10" } } } }, { $group: { _id: null, n: { $sum: "$n" }, b: { $sum: 1 } } }, { $project: { _id: 0 } }],
      sql: `select sum(n)::integer as n, count(*)::integer as b from (select t, count(*) as n, avg(ch10) from (select ch10, ntile(10) over (order by ch9) as t from plants) group by t)`,
    },
    "correlation of channels": {
      pipeline: [{ $group: { _id: "$machine.line", n: { $sum: 1 }, x: { $sum: "$ch1" }, y: { $sum: "$ch2" }, xy: { $sum: { $multiply: ["$ch1", "$ch2"] } } } }, { $project: { c: { $round: [{ $subtract: [{ $divide: ["$xy", "$n"] }, { $multiply: [{ $divide: ["$x", "$n"] }, { $divide: ["$y", "$n"] }] }] }, 4] } } }],
      sql: `select line as _id, round(covar_pop(ch1, ch2), 4) as c from plants group by all`,
    },
    "sum of all integers": {
      pipeline: [{ $group: { _id: "$machine.type", s: { $sum: { $add: INTS.map((c) => `$${c}`) } } } }],
      sql: `select type as _id, sum(${INTS.join(" + ")})::double as s from plants group by all`,
    },
    "greatest channel of each row": {
      pipeline: [{ $group: { _id: "$machine.id", g: { $avg: { $max: CHANNELS.slice(0, 30).map((c) => `$${c}`) } } } }],
      sql: `select id as _id, avg(greatest(${CHANNELS.slice(0, 30)})) as g from plants group by all`,
    },
    "rounded by the ten": {
      pipeline: [{ $group: { _id: { $multiply: [{ $floor: { $divide: ["$ch12", 10] } }, 10] }, n: { $sum: 1 } } }],
      sql: `select floor(ch12 / 10) * 10 as _id, count(*)::integer as n from plants group by all`,
    },
    "small codes": {
      pipeline: [{ $group: { _id: { a: "$i0", b: "$i4", c: "$i8", d: "$i12" }, n: { $sum: 1 }, m: { $avg: "$i19" } } }],
      sql: `select i0 as a, i4 as b, i8 as c, i12 as d, count(*)::integer as n, avg(i19) as m from plants group by all`, keys: ["a", "b", "c", "d"],
    },
    "distinct products by line": {
      pipeline: [{ $group: { _id: "$machine.line", p: { $addToSet: "$product" } } }, { $project: { n: { $size: "$p" } } }],
      sql: `select line as _id, count(distinct product)::integer as n from plants group by all`,
    },
    "states by shift": {
      pipeline: [{ $group: { _id: { shift: { $switch: { branches: [{ case: { $lt: [{ $hour: "$time" }, 6] }, then: "night" }, { case: { $lt: [{ $hour: "$time" }, 14] }, then: "early" }], default: "late" } }, s: "$state" }, n: { $sum: 1 } } }],
      sql: `select case when hour(make_timestamp(time * 1000)) < 6 then 'night' when hour(make_timestamp(time * 1000)) < 14 then 'early' else 'late' end as shift, state as s, count(*)::integer as n from plants group by all`, keys: ["shift", "s"],
    },
    "local hours": {
      pipeline: [{ $group: { _id: { $dateToString: { date: "$time", format: "%H", timezone: "Europe/Berlin" } }, a: { $avg: "$ch20" } } }],
      sql: `select strftime(make_timestamp((time + ${HOUR_MS}) * 1000), '%H') as _id, avg(ch20) as a from plants group by all`,
    },
    "page of faults": {
      pipeline: [{ $match: { state: "fault" } }, { $sort: { ch30: -1 } }, { $skip: 50 }, { $limit: 50 }, { $project: { _id: 0, time: 1, ch30: 1, job: 1 } }],
      sql: `select time, ch30, job from plants where state = 'fault' order by ch30 desc limit 50 offset 50`, keys: ["time", "job"],
    },
    "rows of a machine within ten minutes": {
      pipeline: [{ $match: { "machine.id": 11, time: { $gte: new Date(START + 5 * HOUR_MS), $lt: new Date(START + 5 * HOUR_MS + 10 * MINUTE_MS) } } }, { $sort: { time: 1 } }, { $project: { _id: 0, machine: 0, parts: 0, joules: 0, pulses: 0, start: 0, end: 0 } }],
      sql: `select * exclude (id, line, type, parts, joules, pulses, start_, end_) from plants where id = 11 and time >= ${START + 5 * HOUR_MS} and time < ${START + 5 * HOUR_MS + 10 * MINUTE_MS} order by time`, keys: ["time"],
    },
    "channels as rows": {
      pipeline: [{ $project: { c: ["$ch0", "$ch1", "$ch2", "$ch3"] } }, { $unwind: { path: "$c", includeArrayIndex: "n" } }, { $group: { _id: { $toInt: "$n" }, a: { $avg: "$c" } } }],
      sql: `select n as _id, avg(v) as a from (select 0 as n, ch0 as v from plants union all select 1, ch1 from plants union all select 2, ch2 from plants union all select 3, ch3 from plants) group by all`,
    },
    "greater than the machine's mean": {
      pipeline: [{ $group: { _id: "$machine.id", a: { $avg: "$ch14" } } }, { $lookup: { from: "plants", let: { i: "$_id", a: "$a" }, pipeline: [{ $match: { $expr: { $and: [{ $eq: ["$machine.id", "$$i"] }, { $gt: ["$ch14", "$$a"] }] } } }, { $count: "n" }], as: "o" } }, { $project: { n: { $first: "$o.n" } } }],
      sql: `select id as _id, count(*)::integer as n from plants join (select id, avg(ch14) as a from plants group by id) using (id) where ch14 > a group by all`,
    },
    "sample every tenth": {
      pipeline: [{ $setWindowFields: { partitionBy: "$machine.id", sortBy: { time: 1 }, output: { n: { $documentNumber: {} } } } }, { $match: { n: { $mod: [10, 0] } } }, { $group: { _id: "$machine.id", a: { $sum: "$ch15" } } }],
      sql: `select id as _id, sum(ch15) as a from (select id, ch15, row_number() over (partition by id order by time) as n from plants) where n % 10 = 0 group by all`,
    },
    "ranks by hour": {
      pipeline: [{ $group: { _id: { i: "$machine.id", h: { $dateTrunc: { date: "$time", unit: "hour" } } }, a: { $avg: "$ch16" } } }, { $setWindowFields: { partitionBy: "$_id.h", sortBy: { a: -1 }, output: { r: { $rank: {} } } } }, { $match: { r: 1 } }, { $project: { _id: 0, h: "$_id.h", i: "$_id.i" } }],
      sql: `select h, i from (select id as i, time // ${HOUR_MS} * ${HOUR_MS} as h, rank() over (partition by h order by avg(ch16) desc) as r from plants group by 1, 2) where r = 1`, keys: ["h", "i"],
    },
    "energy share": {
      pipeline: [{ $group: { _id: "$machine.type", e: { $sum: "$i19" } } }, { $setWindowFields: { output: { all: { $sum: "$e" } } } }, { $project: { s: { $divide: ["$e", "$all"] } } }],
      sql: `select type as _id, sum(i19) / sum(sum(i19)) over () as s from plants group by all`,
    },
  },
};

// Rides of taxis, in a collection without metadata: a second date, integers of few values, amounts of money.

import { START, generator } from "../tsbs/random.mjs";

const ROWS = 200_000;
const DAY_MS = 86_400_000;
const PAYMENTS = ["card", "cash", "dispute", "free", "unknown"];

function rows() {
  const random = generator("rides");
  return Array.from({ length: ROWS }, (_, row) => {
    const distance = Math.round(Math.exp(random.normal() * 0.8 + 0.5) * 100) / 100;
    const fare = Math.round((2.5 + distance * 2.5) * 2) / 2;
    const tip = random.next() < 0.6 ? Math.round(fare * random.next() * 30) / 100 : 0;
    const begin = START + row * 1700 + random.below(1500);
    return {
      time: new Date(begin),
      arrival: new Date(begin + 60_000 + Math.floor(distance * 180_000)),
      passengers: 1 + random.below(6),
      distance,
      origin: random.below(263),
      target: random.below(263),
      payment: PAYMENTS[Math.min(4, Math.floor(-Math.log(1 - random.next()) * 1.2))],
      fare,
      tip,
      total: Math.round((fare + tip + 0.8) * 100) / 100,
    };
  });
}

const hours = { $divide: [{ $subtract: ["$arrival", "$time"] }, 3_600_000] };
const HOUR = "((time // 3600000) % 24)::integer";
const [from, to] = [START + DAY_MS, START + 2 * DAY_MS];

export const rides = {
  name: "rides",
  rows,
  columns: { time: "bigint", arrival: "bigint", passengers: "integer", distance: "double", origin: "integer", target: "integer", payment: "varchar", fare: "double", tip: "double", total: "double" },
  queries: {
    "mean by passengers": {
      pipeline: [{ $group: { _id: "$passengers", total: { $avg: "$total" } } }],
      sql: "select passengers as _id, avg(total) as total from rides group by all",
    },
    "count by passengers and day": {
      pipeline: [{ $group: { _id: { passengers: "$passengers", day: { $dayOfMonth: "$time" } }, n: { $sum: 1 } } }],
      sql: "select passengers, day(make_timestamp(time * 1000))::integer as day, count(*)::integer as n from rides group by all",
      keys: ["passengers", "day"],
    },
    "count by passengers, year and distance": {
      pipeline: [{ $group: { _id: { passengers: "$passengers", year: { $year: "$time" }, distance: { $round: "$distance" } }, n: { $sum: 1 } } }],
      sql: "select passengers, year(make_timestamp(time * 1000))::integer as year, round_even(distance, 0) as distance, count(*)::integer as n from rides group by all",
      keys: ["passengers", "distance"],
    },
    "mean by origin and target": {
      pipeline: [{ $group: { _id: { origin: "$origin", target: "$target" }, n: { $sum: 1 }, fare: { $avg: "$fare" } } }],
      sql: "select origin, target, count(*)::integer as n, avg(fare) as fare from rides group by all",
      keys: ["origin", "target"],
    },
    "share of tips by payment": {
      pipeline: [{ $group: { _id: "$payment", tip: { $avg: { $divide: ["$tip", "$fare"] } } } }],
      sql: "select payment as _id, avg(tip / fare) as tip from rides group by all",
    },
    "duration by hour": {
      pipeline: [{ $group: { _id: { $hour: "$time" }, minutes: { $avg: { $dateDiff: { startDate: "$time", endDate: "$arrival", unit: "minute" } } } } }],
      sql: `select ${HOUR} as _id, avg(arrival // 60000 - time // 60000) as minutes from rides group by all`,
    },
    "mean speed": {
      pipeline: [{ $match: { distance: { $gt: 1, $lt: 20 } } }, { $group: { _id: null, speed: { $avg: { $divide: ["$distance", hours] } } } }, { $project: { _id: 0 } }],
      sql: "select avg(distance / ((arrival - time) / 3600000.0)) as speed from rides where distance > 1 and distance < 20",
    },
    "revenue by weekday and hour": {
      pipeline: [{ $group: { _id: { day: { $dayOfWeek: "$time" }, hour: { $hour: "$time" } }, n: { $sum: 1 }, total: { $sum: "$total" } } }],
      sql: `select (dayofweek(make_timestamp(time * 1000)) + 1)::integer as day, ${HOUR} as hour, count(*)::integer as n, sum(total) as total from rides group by all`,
      keys: ["day", "hour"],
    },
    "hundred greatest totals by card": {
      pipeline: [{ $match: { payment: "card" } }, { $sort: { total: -1, time: 1 } }, { $limit: 100 }, { $project: { _id: 0, time: 1, total: 1, origin: 1 } }],
      sql: "select time, total, origin from rides where payment = 'card' order by total desc, time limit 100",
      keys: ["time"],
    },
    "count by day as text": {
      pipeline: [{ $group: { _id: { $dateToString: { date: "$time", format: "%Y-%m-%d" } }, n: { $sum: 1 } } }],
      sql: "select strftime(make_timestamp(time * 1000), '%Y-%m-%d') as _id, count(*)::integer as n from rides group by all",
    },
    "large tips from ten origins": {
      pipeline: [{ $match: { origin: { $in: [3, 17, 44, 99, 120, 144, 161, 200, 230, 250] }, tip: { $gt: 5 } } }, { $group: { _id: "$origin", n: { $sum: 1 } } }],
      sql: "select origin as _id, count(*)::integer as n from rides where origin in (3, 17, 44, 99, 120, 144, 161, 200, 230, 250) and tip > 5 group by all",
    },
    "count of one of three conditions": {
      pipeline: [{ $match: { $or: [{ fare: { $gt: 60 } }, { tip: { $gt: 15 } }, { distance: { $gt: 15 } }] } }, { $count: "n" }],
      sql: "select count(*)::integer as n from rides where fare > 60 or tip > 15 or distance > 15",
    },
    "a day by hour": {
      pipeline: [
        { $match: { time: { $gte: new Date(from), $lt: new Date(to) } } },
        { $group: { _id: { $dateTrunc: { date: "$time", unit: "hour" } }, n: { $sum: 1 }, fare: { $sum: "$fare" } } },
        { $sort: { _id: 1 } },
      ],
      sql: `select (time // 3600000) * 3600000 as _id, count(*)::integer as n, sum(fare) as fare from rides where time >= ${from} and time < ${to} group by all order by _id`,
    },
    "sums of all": {
      pipeline: [{ $group: { _id: null, fare: { $sum: "$fare" }, tip: { $sum: "$tip" }, distance: { $max: "$distance" } } }, { $project: { _id: 0 } }],
      sql: "select sum(fare) as fare, sum(tip) as tip, max(distance) as distance from rides",
    },
    "three greatest of each origin": {
      pipeline: [
        { $match: { time: { $lt: new Date(from) } } },
        { $setWindowFields: { partitionBy: "$origin", sortBy: { total: -1 }, output: { place: { $rank: {} } } } },
        { $match: { place: { $lte: 3 } } },
        { $group: { _id: "$origin", n: { $sum: 1 } } },
      ],
      sql: `select origin as _id, count(*)::integer as n from (select origin, rank() over (partition by origin order by total desc) as place from rides where time < ${from}) where place <= 3 group by all`,
    },
  },
};

// Forty air stations with a row every ten minutes: with the default granularity, a bucket has six rows. Half of the stations have no `pm`, and `humidity` is often
// missing.

import { START, generator } from "../tsbs/random.mjs";

const STATIONS = 40;
const STEPS = 5000;
const STEP_MS = 600_000;
const DAY_MS = 86_400_000;

function rows() {
  const random = generator("stations");
  const temperatures = Array.from({ length: STATIONS }, () => 10 + random.normal() * 5);
  return Array.from({ length: STEPS * STATIONS }, (_, at) => {
    const station = at % STATIONS;
    temperatures[station] += random.normal() * 0.1;
    return {
      time: new Date(START + Math.floor(at / STATIONS) * STEP_MS),
      station: `station ${station}`,
      temperature: Math.round(temperatures[station] * 10) / 10,
      ...(random.next() < 0.7 && { humidity: Math.round(random.next() * 100) }),
      ...(station % 2 === 0 && { pm: random.next() * 80 }),
      wind: Math.abs(random.normal()) * 6,
      direction: random.of(["N", "E", "S", "W", "NE", "SW"]),
      works: random.next() < 0.97,
    };
  });
}

const n = { $sum: 1 };
const [from, to] = [1, 2].map((day) => START + day * DAY_MS);

export const stations = {
  name: "stations",
  meta: "station",
  rows,
  columns: { time: "bigint", station: "varchar", temperature: "double", humidity: "double", pm: "double", wind: "double", direction: "varchar", works: "boolean" },
  queries: {
    "least and greatest of each day": {
      pipeline: [{ $group: { _id: { station: "$station", day: { $dateTrunc: { date: "$time", unit: "day" } } }, least: { $min: "$temperature" }, greatest: { $max: "$temperature" } } }],
      sql: `select station, (time // ${DAY_MS}) * ${DAY_MS} as day, min(temperature) as least, max(temperature) as greatest from stations group by all`,
      keys: ["station", "day"],
    },
    "mean where the field exists": {
      pipeline: [{ $match: { humidity: { $exists: true } } }, { $group: { _id: "$station", humidity: { $avg: "$humidity" } } }],
      sql: "select station as _id, avg(humidity) as humidity from stations where humidity is not null group by all",
    },
    "count where it is missing": {
      pipeline: [{ $match: { pm: null } }, { $group: { _id: "$direction", n } }],
      sql: "select direction as _id, count(*)::integer as n from stations where pm is null group by all",
    },
    "mean of an expression": {
      pipeline: [{ $group: { _id: "$station", feels: { $avg: { $add: ["$temperature", { $multiply: [0.1, { $ifNull: ["$humidity", 50] }] }] } } } }],
      sql: "select station as _id, avg(temperature + 0.1 * coalesce(humidity, 50)) as feels from stations group by all",
    },
    "count by rounded values": {
      pipeline: [{ $group: { _id: { $round: ["$temperature", 0] }, n } }],
      sql: "select round_even(temperature, 0) as _id, count(*)::integer as n from stations group by all",
    },
    "moving mean of an hour": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$station", sortBy: { time: 1 }, output: { mean: { $avg: "$temperature", window: { range: [-1, 0], unit: "hour" } } } } },
        { $group: { _id: "$station", mean: { $max: "$mean" } } },
      ],
      sql: "select station as _id, max(mean) as mean from (select station, avg(temperature) over (partition by station order by time range between 3600000 preceding and current row) as mean from stations) group by all",
    },
    "wind by direction and class": {
      pipeline: [{ $group: { _id: { direction: "$direction", class: { $min: [{ $floor: { $divide: ["$wind", 2] } }, 5] } }, n } }],
      sql: "select direction, least(floor(wind / 2), 5) as class, count(*)::integer as n from stations group by all",
      keys: ["direction", "class"],
    },
    "by hour of the day": {
      pipeline: [{ $match: { works: true } }, { $group: { _id: { $hour: "$time" }, temperature: { $avg: "$temperature" }, wind: { $stdDevPop: "$wind" } } }],
      sql: "select (time // 3600000) % 24 as _id, avg(temperature) as temperature, stddev_pop(wind) as wind from stations where works group by all",
    },
    "rows by two rare values": {
      pipeline: [{ $match: { works: false, wind: { $gt: 10 } } }, { $project: { _id: 0, time: 1, station: 1, wind: 1 } }],
      sql: "select time, station, wind from stations where not works and wind > 10",
      keys: ["time", "station"],
    },
    "a day of two fields": {
      pipeline: [{ $match: { time: { $gte: new Date(from), $lt: new Date(to) } } }, { $project: { _id: 0, time: 1, station: 1, temperature: 1, wind: 1 } }],
      sql: `select time, station, temperature, wind from stations where time >= ${from} and time < ${to}`,
      keys: ["time", "station"],
    },
    "how many temperatures": {
      pipeline: [{ $group: { _id: "$temperature" } }, { $count: "n" }],
      sql: "select count(distinct temperature)::integer as n from stations",
      keys: ["n"],
    },
    "rows behind many by wind": {
      pipeline: [{ $sort: { wind: 1 } }, { $skip: 100_000 }, { $limit: 10 }, { $project: { _id: 0, wind: 1 } }],
      sql: "select wind from stations order by wind limit 10 offset 100000",
      keys: ["wind"],
    },
  },
};

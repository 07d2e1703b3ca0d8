// The queries of the IoT use case. The suite has them in SQL only. The pipelines are equivalent, and follow its other queries for MongoDB.

import { FLEETS } from "./iot-data.mjs";

const MINUTE_MS = 60_000;
const TEN_MINUTES_MS = 10 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

const within = ({ from, to }) => ({ time: { $gte: new Date(from), $lt: new Date(to) } });
const withinSql = ({ from, to }) => `time >= ${from} and time < ${to}`;
const tenMinutes = { $dateTrunc: { date: "$time", unit: "minute", binSize: 10 } };
const tenMinutesSql = `time // ${TEN_MINUTES_MS} * ${TEN_MINUTES_MS}`;
const day = (date) => ({ $dateTrunc: { date, unit: "day" } });
const daySql = (time) => `${time} // ${DAY_MS} * ${DAY_MS}`;
const tags = (...names) => Object.fromEntries(names.map((name) => [name, `$tags.${name}`]));
const parts = (...names) => Object.fromEntries(names.map((name) => [name, `$_id.${name}`]));

/** The newest row of each truck: DuckDB finds the times first, SQLite looks each truck up in its index. */
function newest(table, fields, where) {
  return {
    duckdb: `with newest as (select tags_id, max(time) as time, any_value(name) as name, any_value(driver) as driver, any_value(load_capacity) as load_capacity
        from ${table} join tags on id = tags_id where ${where.tags} group by tags_id)
      select name, driver, ${fields} from newest join ${table} using (tags_id, time) where ${where.rows}`,
    sqlite: `select name, driver, ${fields} from tags join ${table} on tags_id = id and time = (select max(time) from ${table} where tags_id = id) where ${where.tags} and ${where.rows}`,
  };
}

function newestPipeline(match, fields) {
  const values = Object.fromEntries(fields.map((field) => [field, { $first: `$${field}` }]));
  return [{ $match: match }, { $sort: { "tags.name": 1, time: -1 } }, { $group: { _id: tags("name", "driver"), ...values } }];
}

function lastLocations(random) {
  const fleet = random.of(FLEETS);
  return {
    collection: "readings",
    pipeline: newestPipeline({ "tags.fleet": fleet }, ["longitude", "latitude"]),
    sql: newest("readings", "longitude, latitude", { tags: `fleet = '${fleet}'`, rows: "true" }),
    keys: ["name"],
  };
}

function lastLocation(random, data) {
  const name = `truck_${random.below(data.measurements[0].series.length)}`;
  return {
    collection: "readings",
    pipeline: newestPipeline({ "tags.name": { $in: [name] } }, ["longitude", "latitude"]),
    sql: {
      duckdb: `select name, driver, longitude, latitude from readings join tags on id = tags_id where series = '${name}' order by time desc limit 1`,
      sqlite: newest("readings", "longitude, latitude", { tags: `name = '${name}'`, rows: "true" }).sqlite,
    },
    keys: ["name"],
  };
}

function lowFuel(random) {
  const fleet = random.of(FLEETS);
  return {
    collection: "diagnostics",
    pipeline: [...newestPipeline({ "tags.fleet": fleet }, ["fuel_state"]), { $match: { fuel_state: { $lt: 0.1 } } }],
    sql: newest("diagnostics", "fuel_state", { tags: `fleet = '${fleet}'`, rows: "fuel_state < 0.1" }),
    keys: ["name"],
  };
}

function highLoad(random) {
  const fleet = random.of(FLEETS);
  return {
    collection: "diagnostics",
    pipeline: [
      { $match: { "tags.fleet": fleet } },
      { $sort: { "tags.name": 1, time: -1 } },
      { $group: { _id: tags("name", "driver", "load_capacity"), current_load: { $first: "$current_load" } } },
      { $match: { $expr: { $gt: [{ $divide: ["$current_load", "$_id.load_capacity"] }, 0.9] } } },
    ],
    sql: newest("diagnostics", "load_capacity, current_load", { tags: `fleet = '${fleet}'`, rows: "current_load / load_capacity > 0.9" }),
    keys: ["name"],
  };
}

function stationary(random, data) {
  const [fleet, window] = [random.of(FLEETS), random.window(data, 1 / 6)];
  return {
    collection: "readings",
    pipeline: [
      { $match: { "tags.fleet": fleet, ...within(window) } },
      { $group: { _id: tags("name", "driver"), mean: { $avg: "$velocity" } } },
      { $match: { mean: { $lt: 1 } } },
    ],
    sql: `select name, driver, avg(velocity) as mean from tags join readings on tags_id = id where fleet = '${fleet}' and ${withinSql(window)} group by 1, 2 having avg(velocity) < 1`,
    keys: ["name"],
  };
}

/** Trucks that drove in more periods of ten minutes than a driver who rests `restMinutes` per hour. */
function longSessions(hours, restMinutes) {
  return (random, data) => {
    const [fleet, window] = [random.of(FLEETS), random.window(data, hours)];
    const most = Math.floor((window.hours * (60 - restMinutes)) / 10);
    return {
      collection: "readings",
      pipeline: [
        { $match: { "tags.fleet": fleet, ...within(window) } },
        { $group: { _id: { ...tags("name", "driver"), ten_minutes: tenMinutes }, mean: { $avg: "$velocity" } } },
        { $match: { mean: { $gt: 1 } } },
        { $group: { _id: parts("name", "driver"), periods: { $sum: 1 } } },
        { $match: { periods: { $gt: most } } },
      ],
      sql: `select name, driver, count(*) as periods from tags join (
          select ${tenMinutesSql} as ten_minutes, tags_id from readings where ${withinSql(window)} and tags_id in (select id from tags where fleet = '${fleet}') group by 1, 2 having avg(velocity) > 1
        ) on tags_id = id group by 1, 2 having count(*) > ${most}`,
      keys: ["name"],
    };
  };
}

const projectedFuel = () => ({
  collection: "readings",
  pipeline: [
    { $match: { velocity: { $gt: 1 } } },
    { $group: { _id: "$tags.fleet", mean: { $avg: "$fuel_consumption" }, projected: { $avg: "$tags.nominal_fuel_consumption" } } },
  ],
  sql: "select fleet, avg(fuel_consumption) as mean, avg(nominal_fuel_consumption) as projected from readings join tags on id = tags_id where velocity > 1 group by 1",
  key: "fleet",
  keys: ["fleet"],
});

const dailyDriving = () => ({
  collection: "readings",
  pipeline: [
    { $group: { _id: { ...tags("fleet", "name", "driver"), ten_minutes: tenMinutes }, mean: { $avg: "$velocity" } } },
    { $match: { mean: { $gt: 1 } } },
    { $group: { _id: { ...parts("fleet", "name", "driver"), day: day("$_id.ten_minutes") }, periods: { $sum: 1 } } },
    { $group: { _id: parts("fleet", "name", "driver"), hours: { $avg: { $divide: ["$periods", 6] } } } },
  ],
  sql: `with sessions as (select ${tenMinutesSql} as ten_minutes, tags_id from readings group by 1, 2 having avg(velocity) > 1),
      days as (select ${daySql("ten_minutes")} as day, tags_id, count(*) / 6.0 as hours from sessions group by 1, 2)
    select fleet, name, driver, avg(hours) as hours from days join tags on id = tags_id group by 1, 2, 3`,
  keys: ["name"],
});

/** The time that a truck drives from one rest to the next. A drive lasts from the period in which it begins until the next period that changes between driving and rest. */
const drivingSessions = () => ({
  collection: "readings",
  pipeline: [
    { $group: { _id: { name: "$tags.name", ten_minutes: tenMinutes }, mean: { $avg: "$velocity" } } },
    { $project: { _id: 0, name: "$_id.name", start: "$_id.ten_minutes", driving: { $gt: ["$mean", 5] } } },
    { $setWindowFields: { partitionBy: "$name", sortBy: { start: 1 }, output: { before: { $shift: { output: "$driving", by: -1 } } } } },
    { $match: { $expr: { $and: [{ $ne: ["$before", null] }, { $ne: ["$driving", "$before"] }] } } },
    { $setWindowFields: { partitionBy: "$name", sortBy: { start: 1 }, output: { stop: { $shift: { output: "$start", by: 1 } } } } },
    { $match: { driving: true } },
    { $group: { _id: { name: "$name", day: day("$start") }, duration: { $avg: { $subtract: ["$stop", "$start"] } } } },
    { $sort: { "_id.name": 1, "_id.day": 1 } },
  ],
  sql: `with periods as (select tags_id, ${tenMinutesSql} as start, avg(velocity) > 5 as driving from readings group by 1, 2),
      compared as (select *, lag(driving) over (partition by tags_id order by start) as before from periods),
      changes as (select tags_id, start, driving, lead(start) over (partition by tags_id order by start) as stop from compared where driving <> before)
    select name, ${daySql("start")} as day, avg(stop - start) as duration from changes join tags on id = tags_id where driving group by 1, 2 order by 1, 2`,
  times: ["day"],
  keys: ["name", "day"],
});

const meanLoad = () => ({
  collection: "diagnostics",
  pipeline: [
    { $group: { _id: tags("name", "fleet", "model", "load_capacity"), mean: { $avg: "$current_load" } } },
    { $group: { _id: parts("fleet", "model", "load_capacity"), share: { $avg: { $divide: ["$mean", "$_id.load_capacity"] } } } },
  ],
  sql: `select fleet, model, load_capacity, avg(mean / load_capacity) as share from (select tags_id, avg(current_load) as mean from diagnostics group by 1) join tags on id = tags_id group by 1, 2, 3`,
  keys: ["fleet", "model"],
});

const dailyActivity = () => ({
  collection: "diagnostics",
  pipeline: [
    { $group: { _id: { ...tags("name", "fleet", "model"), day: day("$time"), ten_minutes: tenMinutes }, count: { $sum: 1 }, mean: { $avg: "$status" } } },
    { $match: { mean: { $lt: 1 } } },
    { $group: { _id: parts("fleet", "model", "day"), count: { $sum: "$count" } } },
    { $project: { activity: { $divide: ["$count", 144] } } },
    { $sort: { "_id.day": 1 } },
  ],
  sql: `select fleet, model, day, sum(count) / 144.0 as activity from tags join (
      select ${daySql("time")} as day, ${tenMinutesSql} as ten_minutes, tags_id, count(*) as count from diagnostics group by 1, 2, 3 having avg(status) < 1
    ) on tags_id = id group by 1, 2, 3 order by 3`,
  times: ["day"],
  keys: ["fleet", "model", "day"],
});

/** How often a period with at least half of its rows at status 0 follows one with fewer, by model. */
const breakdowns = () => ({
  collection: "diagnostics",
  pipeline: [
    { $group: { _id: { ...tags("name", "model"), ten_minutes: tenMinutes }, count: { $sum: 1 }, zeros: { $sum: { $cond: [{ $eq: ["$status", 0] }, 1, 0] } } } },
    { $project: { broken: { $gte: [{ $divide: ["$zeros", "$count"] }, 0.5] } } },
    { $setWindowFields: { partitionBy: "$_id.name", sortBy: { "_id.ten_minutes": 1 }, output: { next: { $shift: { output: "$broken", by: 1 } } } } },
    { $match: { broken: false, next: true } },
    { $group: { _id: "$_id.model", count: { $sum: 1 } } },
  ],
  sql: `with periods as (select tags_id, ${tenMinutesSql} as ten_minutes, sum(case when status = 0 then 1 else 0 end) * 1.0 / count(*) >= 0.5 as broken from diagnostics group by 1, 2),
      pairs as (select tags_id, broken, lead(broken) over (partition by tags_id order by ten_minutes) as next from periods)
    select model, count(*) as count from pairs join tags on id = tags_id where not broken and next group by 1`,
  key: "model",
  keys: ["model"],
});

export const iotQueries = {
  "last-loc": lastLocations,
  "single-last-loc": lastLocation,
  "low-fuel": lowFuel,
  "high-load": highLoad,
  "stationary-trucks": stationary,
  "long-driving-sessions": longSessions(4, 5),
  "long-daily-sessions": longSessions(24, 35),
  "avg-vs-projected-fuel-consumption": projectedFuel,
  "avg-daily-driving-duration": dailyDriving,
  "avg-daily-driving-session": drivingSessions,
  "avg-load": meanLoad,
  "daily-activity": dailyActivity,
  "breakdown-frequency": breakdowns,
};

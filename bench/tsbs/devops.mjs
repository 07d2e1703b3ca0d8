// The queries of the devops use case. `draw(random, data)` chooses hosts and windows, and gives the same question as a pipeline and in SQL.

import { USAGES } from "./devops-data.mjs";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const UNITS = { [MINUTE_MS]: "minute", [HOUR_MS]: "hour" };

const within = ({ from, to }) => ({ time: { $gte: new Date(from), $lt: new Date(to) } });
const withinSql = ({ from, to }) => `time >= ${from} and time < ${to}`;
const bin = (ms) => ({ $dateTrunc: { date: "$time", unit: UNITS[ms] } });
const binSql = (ms) => `time // ${ms} * ${ms}`;
const named = (prefix, operator, fields) => Object.fromEntries(fields.map((field) => [`${prefix}_${field}`, { [operator]: `$${field}` }]));
const namedSql = (prefix, fields) => fields.map((field) => `${prefix}(${field}) as ${prefix}_${field}`).join(", ");
const kept = (fields) => Object.fromEntries(fields.map((field) => [field, 1]));

function hostsOf(random, data, count) {
  const names = random.some(count, data.measurements[0].series.length).map((host) => `host_${host}`);
  const quoted = names.map((name) => `'${name}'`);
  return {
    match: { "tags.hostname": { $in: names } },
    sql: { duckdb: `series in (${quoted})`, sqlite: `tags_id in (select id from tags where hostname in (${quoted}))` },
  };
}

/** The same statement for both dialects, with the condition of each. */
const statements = (where, statement) => ({ duckdb: statement(where.duckdb), sqlite: statement(where.sqlite).replaceAll("//", "/") });

/** Greatest values of some usages of some hosts, by minute or by hour. */
function greatest({ metrics, hosts, hours, ms }) {
  const fields = USAGES.slice(0, metrics);
  return (random, data) => {
    const [window, chosen] = [random.window(data, hours), hostsOf(random, data, hosts)];
    return {
      collection: "cpu",
      pipeline: [
        { $match: { ...within(window), ...chosen.match } },
        { $project: { _id: 0, time_bucket: bin(ms), ...kept(fields) } },
        { $group: { _id: "$time_bucket", ...named("max", "$max", fields) } },
        { $sort: { _id: 1 } },
      ],
      sql: statements(
        chosen.sql,
        (where) => `select ${binSql(ms)} as time_bucket, ${namedSql("max", fields)} from cpu where ${where} and ${withinSql(window)} group by 1 order by 1`,
      ),
      times: ["time_bucket"],
      key: "time_bucket",
      keys: ["time_bucket"],
    };
  };
}

/** Means of some usages of each host by hour. */
function hourly(metrics) {
  const fields = USAGES.slice(0, metrics);
  return (random, data) => {
    const window = random.window(data, 12);
    return {
      collection: "cpu",
      pipeline: [
        { $match: within(window) },
        { $project: { _id: 0, hour: bin(HOUR_MS), hostname: "$tags.hostname", ...kept(fields) } },
        { $group: { _id: { hour: "$hour", hostname: "$hostname" }, ...named("avg", "$avg", fields) } },
        { $sort: { "_id.hour": 1, "_id.hostname": 1 } },
      ],
      sql: `with means as (select ${binSql(HOUR_MS)} as hour, tags_id, ${namedSql("avg", fields)} from cpu where ${withinSql(window)} group by 1, 2)
        select hour, hostname, ${fields.map((field) => `avg_${field}`)} from means join tags on id = tags_id order by hour, hostname`,
      times: ["hour"],
      keys: ["hour", "hostname"],
    };
  };
}

/** All usages of rows with a busy processor, of one host or of all. */
function busy(hosts) {
  return (random, data) => {
    const window = random.window(data, 12);
    const chosen = hosts ? hostsOf(random, data, hosts) : { match: {}, sql: { duckdb: "true", sqlite: "true" } };
    return {
      collection: "cpu",
      pipeline: [
        { $match: { ...within(window), usage_user: { $gt: 90 }, ...chosen.match } },
        { $project: { _id: 0, time: 1, hostname: "$tags.hostname", ...kept(USAGES) } },
      ],
      sql: statements(
        chosen.sql,
        (where) => `select time, hostname, ${USAGES} from cpu join tags on id = tags_id where usage_user > 90 and ${withinSql(window)} and ${where}`,
      ),
      times: ["time"],
      keys: ["time", "hostname"],
    };
  };
}

function lastMinutes(random, data) {
  const { to } = random.window(data, 1);
  return {
    collection: "cpu",
    pipeline: [
      { $match: { time: { $lt: new Date(to) } } },
      { $project: { _id: 0, time_bucket: bin(MINUTE_MS), usage_user: 1 } },
      { $group: { _id: "$time_bucket", max_value: { $max: "$usage_user" } } },
      { $sort: { _id: -1 } },
      { $limit: 5 },
    ],
    sql: `select ${binSql(MINUTE_MS)} as time_bucket, max(usage_user) as max_value from cpu where time < ${to} group by 1 order by 1 desc limit 5`,
    times: ["time_bucket"],
    key: "time_bucket",
    keys: ["time_bucket"],
  };
}

function lastPoint() {
  return {
    collection: "cpu",
    pipeline: [
      { $sort: { "tags.hostname": 1, time: -1 } },
      { $group: { _id: "$tags.hostname", time: { $first: "$time" }, ...named("last", "$first", USAGES) } },
    ],
    sql: {
      duckdb: `select hostname, time, ${USAGES.map((usage) => `${usage} as last_${usage}`)} from cpu
        join (select tags_id, max(time) as time from cpu group by tags_id) using (tags_id, time) join tags on id = tags_id`,
      sqlite: `select hostname, time, ${USAGES.map((usage) => `${usage} as last_${usage}`)} from tags
        join cpu on tags_id = id and time = (select max(time) from cpu where tags_id = id)`,
    },
    times: ["time"],
    key: "hostname",
    keys: ["hostname"],
  };
}

export const devopsQueries = {
  "single-groupby-1-1-1": greatest({ metrics: 1, hosts: 1, hours: 1, ms: MINUTE_MS }),
  "single-groupby-1-1-12": greatest({ metrics: 1, hosts: 1, hours: 12, ms: MINUTE_MS }),
  "single-groupby-1-8-1": greatest({ metrics: 1, hosts: 8, hours: 1, ms: MINUTE_MS }),
  "single-groupby-5-1-1": greatest({ metrics: 5, hosts: 1, hours: 1, ms: MINUTE_MS }),
  "single-groupby-5-1-12": greatest({ metrics: 5, hosts: 1, hours: 12, ms: MINUTE_MS }),
  "single-groupby-5-8-1": greatest({ metrics: 5, hosts: 8, hours: 1, ms: MINUTE_MS }),
  "cpu-max-all-1": greatest({ metrics: 10, hosts: 1, hours: 8, ms: HOUR_MS }),
  "cpu-max-all-8": greatest({ metrics: 10, hosts: 8, hours: 8, ms: HOUR_MS }),
  "double-groupby-1": hourly(1),
  "double-groupby-5": hourly(5),
  "double-groupby-all": hourly(10),
  "high-cpu-1": busy(1),
  "high-cpu-all": busy(0),
  "groupby-orderby-limit": lastMinutes,
  lastpoint: lastPoint,
};

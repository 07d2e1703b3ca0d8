// Requests as an application logs them: long texts, objects in objects of which most rows lack some fields, a status that is a number or a text, booleans, and arrays of objects.

import { START, generator } from "../tsbs/random.mjs";

const ROWS = 200_000;
const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const ROUTES = Array.from({ length: 60 }, (_, n) => `/api/v${1 + (n % 3)}/${["orders", "carts", "users", "search", "login", "invoices"][n % 6]}/:id${n > 30 ? `/items/${n}` : ""}`);
const ERRORS = ["TimeoutError", "ValidationError", "ConnectionReset", "QuotaExceeded", "NotFound"];
const STEPS = ["auth", "db.query", "cache.get", "render", "queue.push", "http.call"];

export const requests = {
  name: "requests",
  meta: "source",
  rows() {
    const random = generator("requests");
    const zipf = (n) => Math.floor(n ** random.next()) % n;
    return Array.from({ length: ROWS }, (_, row) => {
      const status = random.of([200, 200, 200, 200, 200, 201, 204, 304, 400, 404, 500, 503]);
      const failed = status >= 500;
      const ms = Math.round(Math.exp(3.5 + random.normal() * 1.2) * 100) / 100;
      const user = random.next() < 0.6 ? { id: zipf(20_000), plan: random.of(["free", "free", "team", "enterprise"]), ...(random.next() < 0.3 && { org: `org-${zipf(500)}` }) } : undefined;
      const route = ROUTES[zipf(60)];
      const kind = failed ? random.of(ERRORS) : undefined;
      const spans = Array.from({ length: random.below(4) }, () => ({ step: random.of(STEPS), ms: Math.round(random.next() * ms * 10) / 10, ok: random.next() < 0.97 }));
      return {
        time: new Date(START + row * 500 + random.below(450)),
        source: { service: `svc-${zipf(12)}`, region: random.of(["eu-west", "us-east", "ap-south"]), host: `ip-10-0-${random.below(4)}-${random.below(20)}` },
        level: failed ? "error" : status >= 400 ? "warn" : random.of(["info", "info", "info", "debug"]),
        message: `${failed ? `request failed with ${kind} after ${ms} ms` : `request served in ${ms} ms`} trace=${random.below(0x7fffffff).toString(16)} upstream=backend-${random.below(30)}.internal:8080 retries=${random.below(3)} worker ${random.below(64)} released the connection to the pool and went idle`,
        req: {
          method: random.of(["GET", "GET", "GET", "POST", "PUT", "DELETE"]),
          route,
          ...(random.next() < 0.4 && { query: `q=${random.of(["red", "blue", "green"])}+${random.of(["shoes", "hat", "coat", "bag"])}&page=${random.below(20)}` }),
          ...(user && { user }),
          size: random.below(20_000),
        },
        status: random.next() < 0.2 ? String(status) : status,
        ms,
        cached: random.next() < 0.35,
        ...(random.next() < 0.5 && { sampled: random.next() < 0.1 }),
        ...(kind && { error: { kind, code: random.below(40), ...(random.next() < 0.5 && { stack: `${kind}: at ${STEPS[random.below(6)]} (app.js:${random.below(900)}:${random.below(80)})` }) } }),
        spans,
      };
    });
  },
  columns: {
    time: "bigint", service: "varchar", region: "varchar", host: "varchar", level: "varchar", message: "varchar", method: "varchar", route: "varchar", query: "varchar", user_id: "integer", plan: "varchar",
    org: "varchar", size: "integer", status: "varchar", ms: "double", cached: "boolean", sampled: "boolean", kind: "varchar", code: "integer", stack: "varchar", spans: "varchar",
  },
  cell(r, c) {
    switch (c) {
      case "spans": return r.spans.map((s) => `${s.step}/${s.ms}/${s.ok}`).join("|");
      case "user_id": return r.req.user?.id;
      case "plan": case "org": return r.req.user?.[c];
      case "kind": case "code": case "stack": return r.error?.[c];
      case "method": case "route": case "query": case "size": return r.req[c];
      case "service": case "region": case "host": return r.source[c];
      default: return r[c];
    }
  },
  after: `create or replace table requests as select * exclude (spans), case when spans is null then [] else list_transform(string_split(spans, '|'), x -> {'step': split_part(x, '/', 1), 'ms': split_part(x, '/', 2)::double, 'ok': split_part(x, '/', 3)::boolean}) end as spans from requests`,
  queries: {
    "percentiles by hour": {
      pipeline: [{ $group: { _id: { $dateTrunc: { date: "$time", unit: "hour" } }, p: { $percentile: { input: "$ms", p: [0.5, 0.95, 0.99], method: "approximate" } } } }, { $project: { a: { $arrayElemAt: ["$p", 0] }, n: { $size: "$p" } } }],
      sql: `select time // ${HOUR_MS} * ${HOUR_MS} as _id, quantile_disc(ms, 0.5) as a, 3 as n from requests group by all`,
    },
    "status as a number": {
      pipeline: [{ $group: { _id: { $toInt: "$status" }, n: { $sum: 1 } } }],
      sql: `select status::integer as _id, count(*)::integer as n from requests group by all`,
    },
    "errors by status of two types": {
      pipeline: [{ $match: { $or: [{ status: { $gte: 500 } }, { status: { $gte: "500" } }] } }, { $group: { _id: "$source.service", n: { $sum: 1 } } }],
      sql: `select service as _id, count(*)::integer as n from requests where status >= '500' group by all`,
    },
    "error rate by service and minute": {
      pipeline: [{ $group: { _id: { s: "$source.service", m: { $dateTrunc: { date: "$time", unit: "minute", binSize: 5 } } }, bad: { $sum: { $cond: [{ $eq: ["$level", "error"] }, 1, 0] } }, n: { $sum: 1 } } }, { $project: { r: { $divide: ["$bad", "$n"] } } }],
      sql: `select service as s, time // ${5 * MINUTE_MS} * ${5 * MINUTE_MS} as m, sum(case when level = 'error' then 1 else 0 end) / count(*) as r from requests group by all`,
      keys: ["s", "m"],
    },
    "messages that match": {
      pipeline: [{ $match: { message: /backend-7\.internal.*retries=2/ } }, { $group: { _id: "$source.service", n: { $sum: 1 } } }],
      sql: `select service as _id, count(*)::integer as n from requests where regexp_matches(message, 'backend-7\\.internal.*retries=2') group by all`,
    },
    "messages that contain": {
      pipeline: [{ $match: { message: { $regex: "timeouterror", $options: "i" } } }, { $count: "n" }],
      sql: `select count(*)::integer as n from requests where message ilike '%timeouterror%'`,
    },
    "index of a text": {
      pipeline: [{ $match: { $expr: { $gte: [{ $indexOfCP: ["$message", "backend-7."] }, 0] } } }, { $group: { _id: "$level", n: { $sum: 1 } } }],
      sql: `select level as _id, count(*)::integer as n from requests where contains(message, 'backend-7.') group by all`,
    },
    "length of messages": {
      pipeline: [{ $group: { _id: "$level", a: { $avg: { $strLenCP: "$message" } }, m: { $max: { $strLenBytes: "$message" } } } }],
      sql: `select level as _id, avg(length(message)) as a, max(strlen(message))::integer as m from requests group by all`,
    },
    "extracted worker": {
      pipeline: [
        { $project: { w: { $regexFind: { input: "$message", regex: /worker (\d+)/ } } } },
        { $group: { _id: { $arrayElemAt: ["$w.captures", 0] }, n: { $sum: 1 } } },
      ],
      sql: `select regexp_extract(message, 'worker (\\d+)', 1) as _id, count(*)::integer as n from requests group by all`,
    },
    "upstream by split": {
      pipeline: [{ $group: { _id: { $arrayElemAt: [{ $split: [{ $arrayElemAt: [{ $split: ["$message", "upstream="] }, 1] }, " "] }, 0] }, n: { $sum: 1 } } }],
      sql: `select split_part(split_part(message, 'upstream=', 2), ' ', 1) as _id, count(*)::integer as n from requests group by all`,
    },
    "parameter of queries": {
      pipeline: [{ $match: { "req.query": { $exists: true } } }, { $group: { _id: { $arrayElemAt: [{ $split: [{ $arrayElemAt: [{ $split: ["$req.query", "&"] }, 0] }, "="] }, 1] }, n: { $sum: 1 } } }],
      sql: `select split_part(split_part(query, '&', 1), '=', 2) as _id, count(*)::integer as n from requests where query is not null group by all`,
    },
    "top routes": { pipeline: [{ $sortByCount: "$req.route" }, { $limit: 10 }], sql: `select route as _id, count(*)::integer as count from requests group by all order by count desc limit 10` },
    "route and method": {
      pipeline: [{ $group: { _id: { r: "$req.route", m: "$req.method" }, ms: { $avg: "$ms" }, size: { $sum: "$req.size" } } }],
      sql: `select route as r, method as m, avg(ms) as ms, sum(size)::double as size from requests group by all`, keys: ["r", "m"],
    },
    "by plan": {
      pipeline: [{ $group: { _id: { $ifNull: ["$req.user.plan", "anonymous"] }, n: { $sum: 1 }, ms: { $avg: "$ms" } } }],
      sql: `select coalesce(plan, 'anonymous') as _id, count(*)::integer as n, avg(ms) as ms from requests group by all`,
    },
    "users a plan": {
      pipeline: [{ $match: { "req.user.id": { $exists: true } } }, { $group: { _id: "$req.user.plan", u: { $addToSet: "$req.user.id" } } }, { $project: { n: { $size: "$u" } } }],
      sql: `select plan as _id, count(distinct user_id)::integer as n from requests where user_id is not null group by all`,
    },
    "busiest users": {
      pipeline: [{ $match: { "req.user": { $exists: true } } }, { $group: { _id: "$req.user.id", n: { $sum: 1 }, ms: { $sum: "$ms" } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 20 }],
      sql: `select user_id as _id, count(*)::integer as n, sum(ms) as ms from requests where user_id is not null group by all order by n desc, 1 limit 20`,
    },
    "organisations without": {
      pipeline: [{ $match: { "req.user.org": { $exists: false }, "req.user.plan": "enterprise" } }, { $group: { _id: "$source.region", n: { $sum: 1 } } }],
      sql: `select region as _id, count(*)::integer as n from requests where org is null and plan = 'enterprise' group by all`,
    },
    "orgs with most errors": {
      pipeline: [{ $match: { "error.kind": "TimeoutError", "req.user.org": { $ne: null } } }, { $group: { _id: "$req.user.org", n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 5 }],
      sql: `select org as _id, count(*)::integer as n from requests where kind = 'TimeoutError' and org is not null group by all order by n desc, 1 limit 5`,
    },
    "kinds and codes of errors": {
      pipeline: [{ $match: { level: "error" } }, { $group: { _id: { k: "$error.kind", c: "$error.code" }, n: { $sum: 1 } } }],
      sql: `select kind as k, code as c, count(*)::integer as n from requests where level = 'error' group by all`, keys: ["k", "c"],
    },
    "first line of stacks": {
      pipeline: [{ $match: { "error.stack": { $type: "string" } } }, { $group: { _id: { $arrayElemAt: [{ $split: ["$error.stack", " ("] }, 0] }, n: { $sum: 1 } } }],
      sql: `select split_part(stack, ' (', 1) as _id, count(*)::integer as n from requests where stack is not null group by all`,
    },
    "time by step": {
      pipeline: [{ $unwind: "$spans" }, { $group: { _id: "$spans.step", ms: { $sum: "$spans.ms" }, n: { $sum: 1 } } }],
      sql: `select s.step as _id, sum(s.ms) as ms, count(*)::integer as n from (select unnest(spans) as s from requests) group by all`,
    },
    "sum of spans of each": {
      pipeline: [{ $group: { _id: "$req.method", d: { $avg: { $sum: "$spans.ms" } } } }],
      sql: `select method as _id, avg(coalesce(list_sum(list_transform(spans, x -> x.ms)), 0)) as d from requests group by all`,
    },
    "number of database steps": {
      pipeline: [{ $group: { _id: { $size: { $filter: { input: "$spans", cond: { $eq: ["$$this.step", "db.query"] } } } }, n: { $sum: 1 } } }],
      sql: `select len(list_filter(spans, x -> x.step = 'db.query'))::integer as _id, count(*)::integer as n from requests group by all`,
    },
    "with a failed step": {
      pipeline: [{ $match: { spans: { $elemMatch: { step: "db.query", ok: false } } } }, { $group: { _id: "$source.service", n: { $sum: 1 } } }],
      sql: `select service as _id, count(*)::integer as n from requests where len(list_filter(spans, x -> x.step = 'db.query' and not x.ok)) > 0 group by all`,
    },
    "with a slow step": {
      pipeline: [{ $match: { "spans.ms": { $gt: 200 } } }, { $group: { _id: "$req.route", n: { $sum: 1 } } }],
      sql: `select route as _id, count(*)::integer as n from requests where len(list_filter(spans, x -> x.ms > 200)) > 0 group by all`,
    },
    "longest step by reduce": {
      pipeline: [{ $group: { _id: "$source.region", m: { $max: { $reduce: { input: "$spans", initialValue: 0, in: { $max: ["$$value", "$$this.ms"] } } } } } }],
      sql: `select region as _id, max(list_max(list_transform(spans, x -> x.ms))) as m from requests group by all`,
    },
    "steps of all": {
      pipeline: [{ $group: { _id: { $reduce: { input: "$spans.step", initialValue: "", in: { $concat: ["$$value", ">", "$$this"] } } }, n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 10 }],
      sql: `select case when len(spans) = 0 then '' else '>' || array_to_string(list_transform(spans, x -> x.step), '>') end as _id, count(*)::integer as n from requests group by all order by n desc, 1 limit 10`,
    },
    "slowest of each service": {
      pipeline: [{ $group: { _id: "$source.service", t: { $topN: { n: 3, sortBy: { ms: -1, time: 1 }, output: { ms: "$ms", r: "$req.route" } } } } }, { $unwind: "$t" }, { $project: { ms: "$t.ms", r: "$t.r" } }],
      sql: `select service as _id, ms, route as r from (select service, ms, route, row_number() over (partition by service order by ms desc, time) as n from requests) where n <= 3`,
      keys: ["_id", "r", "ms"],
    },
    "page of errors": {
      pipeline: [{ $match: { level: "error", "source.region": "eu-west" } }, { $sort: { time: -1 } }, { $skip: 100 }, { $limit: 50 }, { $project: { _id: 0, time: 1, message: 1, route: "$req.route", kind: "$error.kind" } }],
      sql: `select time, message, route, kind from requests where level = 'error' and region = 'eu-west' order by time desc limit 50 offset 100`, keys: ["time", "message"],
    },
    "page by length": {
      pipeline: [{ $match: { "req.method": "POST" } }, { $sort: { ms: -1, time: 1 } }, { $skip: 1000 }, { $limit: 20 }, { $project: { _id: 0, time: 1, ms: 1, route: "$req.route" } }],
      sql: `select time, ms, route from requests where method = 'POST' order by ms desc, time limit 20 offset 1000`, keys: ["time", "route"],
    },
    "cached and sampled": {
      pipeline: [{ $group: { _id: { c: "$cached", s: { $ifNull: ["$sampled", false] } }, n: { $sum: 1 } } }],
      sql: `select cached as c, coalesce(sampled, false) as s, count(*)::integer as n from requests group by all`, keys: ["c", "s"],
    },
    "hit ratio by route": {
      pipeline: [{ $group: { _id: "$req.route", hit: { $avg: { $cond: ["$cached", 1, 0] } } } }, { $sort: { hit: -1 } }, { $limit: 5 }],
      sql: `select route as _id, avg(case when cached then 1 else 0 end) as hit from requests group by all order by hit desc limit 5`,
    },
    "sampled or slow": {
      pipeline: [{ $match: { $or: [{ sampled: true }, { ms: { $gt: 1000 } }, { "req.size": { $gt: 19_900 } }] } }, { $group: { _id: "$source.host", n: { $sum: 1 } } }],
      sql: `select host as _id, count(*)::integer as n from requests where sampled or ms > 1000 or size > 19900 group by all`,
    },
    "histogram": {
      pipeline: [{ $bucket: { groupBy: "$ms", boundaries: [0, 5, 10, 25, 50, 100, 250, 500, 1000], default: "more", output: { n: { $sum: 1 }, size: { $avg: "$req.size" } } } }, { $project: { _id: { $toString: "$_id" }, n: 1, size: 1 } }],
      sql: `select case when ms < 5 then '0' when ms < 10 then '5' when ms < 25 then '10' when ms < 50 then '25' when ms < 100 then '50' when ms < 250 then '100' when ms < 500 then '250' when ms < 1000 then '500' else 'more' end as _id, count(*)::integer as n, avg(size) as size from requests group by all`,
    },
    "apdex by service": {
      pipeline: [{ $group: { _id: "$source.service", n: { $sum: 1 }, good: { $sum: { $cond: [{ $lte: ["$ms", 50] }, 1, 0] } }, fair: { $sum: { $cond: [{ $and: [{ $gt: ["$ms", 50] }, { $lte: ["$ms", 200] }] }, 1, 0] } } } }, { $project: { a: { $divide: [{ $add: ["$good", { $divide: ["$fair", 2] }] }, "$n"] } } }],
      sql: `select service as _id, (sum(case when ms <= 50 then 1 else 0 end) + sum(case when ms > 50 and ms <= 200 then 1 else 0 end) / 2) / count(*) as a from requests group by all`,
    },
    "pivot of levels by hour": {
      pipeline: [{ $group: { _id: { $dateToString: { date: "$time", format: "%Y-%m-%dT%H" } }, e: { $sum: { $cond: [{ $eq: ["$level", "error"] }, 1, 0] } }, w: { $sum: { $cond: [{ $eq: ["$level", "warn"] }, 1, 0] } }, i: { $sum: { $cond: [{ $in: ["$level", ["info", "debug"]] }, 1, 0] } } } }],
      sql: `select strftime(make_timestamp(time * 1000), '%Y-%m-%dT%H') as _id, sum(case when level = 'error' then 1 else 0 end)::double as e, sum(case when level = 'warn' then 1 else 0 end)::double as w, sum(case when level in ('info', 'debug') then 1 else 0 end)::double as i from requests group by all`,
    },
    "facets of errors": {
      pipeline: [{ $match: { level: { $in: ["error", "warn"] } } }, { $facet: { kind: [{ $match: { error: { $exists: true } } }, { $sortByCount: "$error.kind" }], service: [{ $sortByCount: "$source.service" }], hour: [{ $group: { _id: { $toString: { $hour: "$time" } }, count: { $sum: 1 } } }] } }, { $project: { n: { $concatArrays: ["$kind", "$service", "$hour"] } } }, { $unwind: "$n" }, { $replaceRoot: { newRoot: "$n" } }],
      sql: `select kind as _id, count(*)::integer as count from requests where level = 'error' group by all union all select service, count(*)::integer from requests where level in ('error', 'warn') group by all union all select hour(make_timestamp(time * 1000))::varchar, count(*)::integer from requests where level in ('error', 'warn') group by all`,
    },
    "gap between errors": {
      pipeline: [{ $match: { level: "error" } }, { $setWindowFields: { partitionBy: "$source.service", sortBy: { time: 1 }, output: { b: { $shift: { output: "$time", by: -1 } } } } }, { $group: { _id: "$source.service", g: { $avg: { $dateDiff: { startDate: "$b", endDate: "$time", unit: "millisecond" } } } } }],
      sql: `select service as _id, avg(time - b) as g from (select service, time, lag(time) over (partition by service order by time) as b from requests where level = 'error') group by all`,
    },
    "sessions of users": {
      pipeline: [{ $match: { "req.user.id": { $gte: 0 } } }, { $setWindowFields: { partitionBy: "$req.user.id", sortBy: { time: 1 }, output: { b: { $shift: { output: "$time", by: -1 } } } } }, { $group: { _id: "$req.user.plan", s: { $sum: { $cond: [{ $lt: [{ $subtract: ["$time", { $ifNull: ["$b", new Date(0)] }] }, 30 * MINUTE_MS] }, 0, 1] } } } }],
      sql: `select plan as _id, sum(case when time - coalesce(b, 0) < ${30 * MINUTE_MS} then 0 else 1 end)::double as s from (select plan, time, lag(time) over (partition by user_id order by time) as b from requests where user_id is not null) group by all`,
    },
    "requests a minute, moving": {
      pipeline: [{ $group: { _id: { $dateTrunc: { date: "$time", unit: "minute" } }, n: { $sum: 1 }, e: { $sum: { $cond: [{ $eq: ["$level", "error"] }, 1, 0] } } } }, { $setWindowFields: { sortBy: { _id: 1 }, output: { n5: { $sum: "$n", window: { range: [-5, 0], unit: "minute" } }, total: { $sum: "$e", window: { documents: ["unbounded", "current"] } } } } }, { $project: { n5: 1, total: 1 } }],
      sql: `select _id, sum(n) over (order by _id range between ${5 * MINUTE_MS} preceding and current row)::double as n5, sum(e) over (order by _id rows unbounded preceding)::double as total from (select time // ${MINUTE_MS} * ${MINUTE_MS} as _id, count(*) as n, sum(case when level = 'error' then 1 else 0 end) as e from requests group by all)`,
    },
    "fields of requests as rows": {
      pipeline: [{ $project: { k: { $objectToArray: "$req" } } }, { $unwind: "$k" }, { $group: { _id: "$k.k", n: { $sum: 1 } } }],
      sql: `select * from (values ('method', (select count(method)::integer from requests)), ('route', (select count(route)::integer from requests)), ('query', (select count(query)::integer from requests)), ('user', (select count(user_id)::integer from requests)), ('size', (select count(size)::integer from requests))) t(_id, n)`,
    },
    "users who failed and paid": {
      pipeline: [{ $match: { level: "error", "req.user.id": { $type: "number" } } }, { $group: { _id: "$req.user.id" } }, { $lookup: { from: "requests", localField: "_id", foreignField: "req.user.id", pipeline: [{ $match: { "req.user.plan": "enterprise", "req.method": "POST" } }, { $count: "n" }], as: "o" } }, { $match: { "o.n": { $gt: 20 } } }, { $project: { n: { $first: "$o.n" } } }],
      sql: `select user_id as _id, count(*)::integer as n from requests where plan = 'enterprise' and method = 'POST' and user_id in (select user_id from requests where level = 'error' and user_id is not null) group by all having n > 20`,
    },
    "anonymised rows": {
      pipeline: [{ $match: { "req.user.org": "org-3" } }, { $replaceWith: { $mergeObjects: [{ query: "none" }, "$req.user", { time: "$time", ms: "$ms" }] } }, { $project: { time: 1, ms: 1, plan: 1, query: 1 } }],
      sql: `select time, ms, plan, 'none' as query from requests where org = 'org-3'`, keys: ["time"],
    },
    "many ids": {
      pipeline: [{ $match: { "req.user.id": { $in: Array.from({ length: 500 }, (_, n) => n * 37) } } }, { $group: { _id: "$req.user.plan", n: { $sum: 1 } } }],
      sql: `select plan as _id, count(*)::integer as n from requests where user_id in (${Array.from({ length: 500 }, (_, n) => n * 37)}) group by all`,
    },
    "routes in upper case without ids": {
      pipeline: [{ $group: { _id: { $toUpper: { $replaceAll: { input: "$req.route", find: ":id", replacement: "*" } } }, n: { $sum: 1 } } }],
      sql: `select upper(replace(route, ':id', '*')) as _id, count(*)::integer as n from requests group by all`,
    },
    "hosts of a service as a list": {
      pipeline: [{ $group: { _id: "$source.service", h: { $addToSet: "$source.host" } } }, { $project: { n: { $size: "$h" } } }],
      sql: `select service as _id, count(distinct host)::integer as n from requests group by all`,
    },
    "all warnings of an hour": {
      pipeline: [{ $match: { time: { $gte: new Date(START + 5 * HOUR_MS), $lt: new Date(START + 6 * HOUR_MS) }, level: { $ne: "info" } } }, { $sort: { time: 1 } }, { $project: { _id: 0, time: 1, level: 1, message: 1, status: { $toString: "$status" } } }],
      sql: `select time, level, message, status from requests where time >= ${START + 5 * HOUR_MS} and time < ${START + 6 * HOUR_MS} and level <> 'info' order by time`, keys: ["time", "message"],
    },
    "first error of each host": {
      pipeline: [{ $match: { level: "error" } }, { $sort: { time: 1 } }, { $group: { _id: "$source.host", t: { $first: "$time" }, m: { $first: "$error.kind" } } }],
      sql: `select host as _id, min(time) as t, arg_min(kind, time) as m from requests where level = 'error' group by all`,
    },
    "error after error": {
      pipeline: [{ $setWindowFields: { partitionBy: { s: "$source.service", r: "$source.region" }, sortBy: { time: 1 }, output: { prev: { $shift: { output: "$level", by: -1, default: "none" } } } } }, { $match: { level: "error", prev: "error" } }, { $count: "n" }],
      sql: `select count(*)::integer as n from (select level, lag(level) over (partition by service, region order by time) as prev from requests) where level = 'error' and prev = 'error'`,
    },
  },
};

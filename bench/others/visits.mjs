// Visits of pages: eight thousand visitors, texts of which some repeat often, arrays of tags, and objects.

import { START, generator } from "../tsbs/random.mjs";

const ROWS = 200_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export const visits = {
  name: "visits",
  meta: "source",
  rows() {
    const random = generator("visits");
    const users = Array.from({ length: 8000 }, (_, n) => `u-${((n * 2654435761) >>> 0).toString(16)}-${n}`);
    const paths = Array.from(
      { length: 900 },
      (_, n) => `/${["shop", "blog", "help", "account"][n % 4]}/${["shoes", "hats", "coats", "news", "orders"][n % 5]}/item-${n}`,
    );
    const agents = Array.from({ length: 60 }, (_, n) => `Mozilla/5.0 (${["X11; Linux", "Windows NT 10.0", "Macintosh", "iPhone"][n % 4]}) Browser/${100 + n}`);
    const zipf = (n) => Math.floor(n ** random.next()) % n;
    return Array.from({ length: ROWS }, (_, row) => ({
      time: new Date(START + Math.floor(row * 400 + random.next() * 300)),
      source: { country: ["de", "fr", "us", "in", "br", "jp"][zipf(6)], channel: random.of(["web", "app", "mail"]) },
      visitor: users[random.below(8000)],
      path: paths[zipf(900)],
      agent: agents[zipf(60)],
      ms: Math.round(Math.exp(4 + random.normal()) * 10) / 10,
      status: random.of([200, 200, 200, 200, 200, 304, 404, 500]),
      bytes: random.below(200_000),
      tags: Array.from({ length: random.below(4) }, () => random.of(["new", "sale", "a", "b", "vip", "bot", "beta"])),
      geo: { lat: Math.round(random.next() * 18000) / 100 - 90, city: `city ${zipf(300)}` },
      ...(random.next() < 0.1 && { referrer: `https://site${zipf(200)}.example/${random.below(50)}` }),
    }));
  },
  columns: {
    time: "bigint",
    country: "varchar",
    channel: "varchar",
    visitor: "varchar",
    path: "varchar",
    agent: "varchar",
    ms: "double",
    status: "integer",
    bytes: "integer",
    tags: "varchar",
    lat: "double",
    city: "varchar",
    referrer: "varchar",
  },
  /** The value of a column of SQL. */
  cell: (row, c) => (c === "tags" ? row.tags.join("|") : c === "lat" || c === "city" ? row.geo[c] : (row[c] ?? row.source[c] ?? "")),
  /** What makes lists of texts. */
  after: `create or replace table visits as select * exclude (tags), case when tags is null then []::varchar[] else string_split(tags, '|') end as tags from visits`,
  queries: {
    "visits by country and hour": {
      pipeline: [{ $group: { _id: { c: "$source.country", h: { $dateTrunc: { date: "$time", unit: "hour" } } }, n: { $sum: 1 }, ms: { $avg: "$ms" } } }],
      sql: `select country as c, time // ${HOUR_MS} * ${HOUR_MS} as h, count(*)::integer as n, avg(ms) as ms from visits group by all`,
      keys: ["c", "h"],
    },
    "top pages": {
      pipeline: [{ $group: { _id: "$path", n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 10 }],
      sql: `select path as _id, count(*)::integer as n from visits group by all order by n desc, 1 limit 10`,
    },
    "unique users a country": {
      pipeline: [{ $group: { _id: { c: "$source.country", u: "$visitor" } } }, { $group: { _id: "$_id.c", n: { $sum: 1 } } }],
      sql: `select country as _id, count(distinct visitor)::integer as n from visits group by all`,
    },
    "unique users by set": {
      pipeline: [{ $group: { _id: "$source.channel", u: { $addToSet: "$visitor" } } }, { $project: { n: { $size: "$u" } } }],
      sql: `select channel as _id, count(distinct visitor)::integer as n from visits group by all`,
    },
    "users with most visits": {
      pipeline: [{ $group: { _id: "$visitor", n: { $sum: 1 }, bytes: { $sum: "$bytes" } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 20 }],
      sql: `select visitor as _id, count(*)::integer as n, sum(bytes)::double as bytes from visits group by all order by n desc, 1 limit 20`,
    },
    "errors by minute": {
      pipeline: [{ $match: { status: { $gte: 400 } } }, { $group: { _id: { $dateTrunc: { date: "$time", unit: "minute", binSize: 10 } }, n: { $sum: 1 } } }],
      sql: `select time // ${10 * MINUTE_MS} * ${10 * MINUTE_MS} as _id, count(*)::integer as n from visits where status >= 400 group by all`,
    },
    "share of errors by page": {
      pipeline: [
        { $group: { _id: "$path", n: { $sum: 1 }, bad: { $sum: { $cond: [{ $gte: ["$status", 500] }, 1, 0] } } } },
        { $project: { share: { $divide: ["$bad", "$n"] } } },
      ],
      sql: `select path as _id, sum(case when status >= 500 then 1 else 0 end) / count(*) as share from visits group by all`,
    },
    "section of pages": {
      pipeline: [{ $group: { _id: { $arrayElemAt: [{ $split: ["$path", "/"] }, 1] }, n: { $sum: 1 }, ms: { $avg: "$ms" } } }],
      sql: `select split_part(path, '/', 2) as _id, count(*)::integer as n, avg(ms) as ms from visits group by all`,
    },
    "pages that begin with": {
      pipeline: [{ $match: { path: /^\/shop\/shoes/ } }, { $group: { _id: "$source.country", bytes: { $sum: "$bytes" } } }],
      sql: `select country as _id, sum(bytes)::double as bytes from visits where path like '/shop/shoes%' group by all`,
    },
    "agents that contain": {
      pipeline: [{ $match: { agent: /iPhone/ } }, { $group: { _id: "$path", n: { $sum: 1 } } }],
      sql: `select path as _id, count(*)::integer as n from visits where agent like '%iPhone%' group by all`,
    },
    "count of each tag": {
      pipeline: [{ $unwind: "$tags" }, { $group: { _id: "$tags", n: { $sum: 1 } } }],
      sql: `select t as _id, count(*)::integer as n from (select unnest(tags) as t from visits) group by all`,
    },
    "mean ms of a tag": {
      pipeline: [{ $match: { tags: "vip" } }, { $group: { _id: "$source.country", ms: { $avg: "$ms" } } }],
      sql: `select country as _id, avg(ms) as ms from visits where list_contains(tags, 'vip') group by all`,
    },
    "by number of tags": {
      pipeline: [{ $group: { _id: { $size: "$tags" }, bytes: { $avg: "$bytes" } } }],
      sql: `select len(tags) as _id, avg(bytes) as bytes from visits group by all`,
    },
    "by two tags of all": {
      pipeline: [{ $match: { tags: { $all: ["vip", "sale"] } } }, { $count: "n" }],
      sql: `select count(*)::integer as n from visits where list_contains(tags, 'vip') and list_contains(tags, 'sale')`,
    },
    "by city": {
      pipeline: [{ $group: { _id: "$geo.city", n: { $sum: 1 }, lat: { $avg: "$geo.lat" } } }],
      sql: `select city as _id, count(*)::integer as n, avg(lat) as lat from visits group by all`,
    },
    "north of": {
      pipeline: [{ $match: { "geo.lat": { $gt: 60 } } }, { $group: { _id: "$geo.city", n: { $sum: 1 } } }],
      sql: `select city as _id, count(*)::integer as n from visits where lat > 60 group by all`,
    },
    "referrer hosts": {
      pipeline: [{ $match: { referrer: { $exists: true } } }, { $group: { _id: { $arrayElemAt: [{ $split: ["$referrer", "/"] }, 2] }, n: { $sum: 1 } } }],
      sql: `select split_part(referrer, '/', 3) as _id, count(*)::integer as n from visits where referrer is not null group by all`,
    },
    "first and last visit of users": {
      pipeline: [
        { $group: { _id: "$visitor", first: { $min: "$time" }, last: { $max: "$time" } } },
        { $group: { _id: null, mean: { $avg: { $subtract: ["$last", "$first"] } } } },
        { $project: { _id: 0 } },
      ],
      sql: `select avg(last - first) as mean from (select min(time) as first, max(time) as last from visits group by visitor)`,
    },
    sessions: {
      pipeline: [
        { $setWindowFields: { partitionBy: "$visitor", sortBy: { time: 1 }, output: { before: { $shift: { output: "$time", by: -1 } } } } },
        { $match: { $expr: { $or: [{ $eq: ["$before", null] }, { $gt: [{ $subtract: ["$time", "$before"] }, 30 * MINUTE_MS] }] } } },
        { $group: { _id: "$source.channel", n: { $sum: 1 } } },
      ],
      sql: `select channel as _id, count(*)::integer as n from (select channel, time, lag(time) over (partition by visitor order by time) as before from visits) where before is null or time - before > ${30 * MINUTE_MS} group by all`,
    },
    "next page": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$visitor", sortBy: { time: 1 }, output: { next: { $shift: { output: "$path", by: 1 } } } } },
        { $match: { path: "/shop/shoes/item-0", next: { $ne: null } } },
        { $group: { _id: "$next", n: { $sum: 1 } } },
      ],
      sql: `select next as _id, count(*)::integer as n from (select path, lead(path) over (partition by visitor order by time) as next from visits) where path = '/shop/shoes/item-0' and next is not null group by all`,
    },
    "slowest ten": {
      pipeline: [{ $sort: { ms: -1, bytes: 1 } }, { $limit: 10 }, { $project: { _id: 0, visitor: 1, path: 1, ms: 1 } }],
      sql: `select visitor, path, ms from visits order by ms desc, bytes limit 10`,
      keys: ["visitor", "path"],
    },
    "slowest of each section": {
      pipeline: [{ $group: { _id: { $substrCP: ["$path", 0, 5] }, ms: { $max: "$ms" }, path: { $top: { sortBy: { ms: -1, bytes: 1 }, output: "$path" } } } }],
      sql: `select substr(path, 1, 5) as _id, max(ms) as ms, (array_agg(path order by ms desc, bytes))[1] as path from visits group by all`,
    },
    "rows of a user": {
      pipeline: [{ $match: { visitor: "u-0-0" } }, { $sort: { time: 1 } }, { $project: { _id: 0, time: 1, path: 1 } }],
      sql: `select time, path from visits where visitor = 'u-0-0' order by time`,
      keys: ["time"],
    },
    "status classes": {
      pipeline: [{ $group: { _id: { $floor: { $divide: ["$status", 100] } }, n: { $sum: 1 }, bytes: { $sum: "$bytes" } } }],
      sql: `select status // 100 as _id, count(*)::integer as n, sum(bytes)::double as bytes from visits group by all`,
    },
    "histogram of ms": {
      pipeline: [{ $bucket: { groupBy: "$ms", boundaries: [0, 10, 30, 100, 300, 1000, 1e9], output: { n: { $sum: 1 } } } }],
      sql: `select case when ms < 10 then 0 when ms < 30 then 10 when ms < 100 then 30 when ms < 300 then 100 when ms < 1000 then 300 else 1000 end as _id, count(*)::integer as n from visits group by all`,
    },
    facets: {
      pipeline: [
        { $facet: { a: [{ $group: { _id: "$status", n: { $sum: 1 } } }], b: [{ $group: { _id: "$agent", n: { $sum: 1 } } }] } },
        { $project: { n: { $concatArrays: ["$a", "$b"] } } },
        { $unwind: "$n" },
        { $project: { _id: { $toString: "$n._id" }, n: "$n.n" } },
      ],
      sql: `select status::varchar as _id, count(*)::integer as n from visits group by all union all select agent as _id, count(*)::integer as n from visits group by all`,
    },
    "moving mean": {
      pipeline: [
        { $group: { _id: { $dateTrunc: { date: "$time", unit: "minute" } }, n: { $sum: 1 } } },
        { $setWindowFields: { sortBy: { _id: 1 }, output: { mean: { $avg: "$n", window: { documents: [-9, 0] } } } } },
        { $project: { mean: 1 } },
      ],
      sql: `select _id, avg(n) over (order by _id rows between 9 preceding and current row) as mean from (select time // ${MINUTE_MS} * ${MINUTE_MS} as _id, count(*) as n from visits group by all)`,
    },
    "lower case agents": {
      pipeline: [{ $group: { _id: { $toLower: "$agent" }, n: { $sum: 1 } } }],
      sql: `select lower(agent) as _id, count(*)::integer as n from visits group by all`,
    },
    "weekday and hour": {
      pipeline: [{ $group: { _id: { d: { $dayOfWeek: "$time" }, h: { $hour: "$time" } }, n: { $sum: 1 } } }],
      sql: `select dayofweek(make_timestamp(time * 1000)) + 1 as d, hour(make_timestamp(time * 1000)) as h, count(*)::integer as n from visits group by all`,
      keys: ["d", "h"],
    },
    "day as a text": {
      pipeline: [{ $group: { _id: { $dateToString: { date: "$time", format: "%Y-%m-%d %H" } }, n: { $sum: 1 } } }],
      sql: `select strftime(make_timestamp(time * 1000), '%Y-%m-%d %H') as _id, count(*)::integer as n from visits group by all`,
    },
    "bytes rounded": {
      pipeline: [{ $group: { _id: { $round: [{ $divide: ["$bytes", 1000] }, 0] }, n: { $sum: 1 } } }],
      sql: `select round_even(bytes / 1000, 0) as _id, count(*)::integer as n from visits group by all`,
    },
  },
};

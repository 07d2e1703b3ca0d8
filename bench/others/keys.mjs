// One series with keys of few and of many values, as benchmarks of data frames have them.

import { START, generator } from "../tsbs/random.mjs";

const ROWS = 200_000;
const MANY = 20_000;

function rows() {
  const random = generator("keys");
  const text = (bound, digits) => `id${String(random.below(bound)).padStart(digits, "0")}`;
  return Array.from({ length: ROWS }, (_, row) => ({
    time: new Date(START + row * 100),
    id1: text(100, 3),
    id2: text(100, 3),
    id3: text(MANY, 10),
    id4: random.below(100),
    id5: random.below(100),
    id6: random.below(MANY),
    v1: 1 + random.below(5),
    v2: 1 + random.below(15),
    v3: Math.round(random.next() * 1e8) / 1e6,
  }));
}

const sum = (field) => ({ $sum: `$${field}` });
const mean = (field) => ({ $avg: `$${field}` });

export const keys = {
  name: "keys",
  rows,
  columns: { time: "bigint", id1: "varchar", id2: "varchar", id3: "varchar", id4: "integer", id5: "integer", id6: "integer", v1: "integer", v2: "integer", v3: "double" },
  queries: {
    "by a hundred texts": {
      pipeline: [{ $group: { _id: "$id1", v1: sum("v1") } }],
      sql: "select id1 as _id, sum(v1)::double as v1 from keys group by all",
    },
    "by two of a hundred texts": {
      pipeline: [{ $group: { _id: { id1: "$id1", id2: "$id2" }, v1: sum("v1") } }],
      sql: "select id1, id2, sum(v1)::double as v1 from keys group by all",
      keys: ["id1", "id2"],
    },
    "by many texts": {
      pipeline: [{ $group: { _id: "$id3", v1: sum("v1"), v3: mean("v3") } }],
      sql: "select id3 as _id, sum(v1)::double as v1, avg(v3) as v3 from keys group by all",
    },
    "by a hundred integers": {
      pipeline: [{ $group: { _id: "$id4", v1: mean("v1"), v2: mean("v2"), v3: mean("v3") } }],
      sql: "select id4 as _id, avg(v1) as v1, avg(v2) as v2, avg(v3) as v3 from keys group by all",
    },
    "by many integers": {
      pipeline: [{ $group: { _id: "$id6", v1: sum("v1"), v2: sum("v2"), v3: sum("v3") } }],
      sql: "select id6 as _id, sum(v1)::double as v1, sum(v2)::double as v2, sum(v3) as v3 from keys group by all",
    },
    "deviation by two of a hundred integers": {
      pipeline: [{ $group: { _id: { id4: "$id4", id5: "$id5" }, v3: { $stdDevSamp: "$v3" } } }],
      sql: "select id4, id5, stddev_samp(v3) as v3 from keys group by all",
      keys: ["id4", "id5"],
    },
    "range by many texts": {
      pipeline: [{ $group: { _id: "$id3", most: { $max: "$v1" }, least: { $min: "$v2" } } }, { $project: { range: { $subtract: ["$most", "$least"] } } }],
      sql: "select id3 as _id, max(v1) - min(v2) as range from keys group by all",
    },
    "greatest two by many integers": {
      pipeline: [{ $group: { _id: "$id6", v3: { $maxN: { input: "$v3", n: 2 } } } }, { $unwind: "$v3" }],
      sql: "select id6 as _id, v3 from (select id6, v3, row_number() over (partition by id6 order by v3 desc) as place from keys) where place <= 2",
      keys: ["_id", "v3"],
    },
    "groups of all six keys": {
      pipeline: [
        { $group: { _id: Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`id${n}`, `$id${n}`])), v3: sum("v3") } },
        { $group: { _id: null, n: { $sum: 1 }, v3: { $sum: "$v3" } } },
        { $project: { _id: 0 } },
      ],
      sql: "select count(*)::integer as n, sum(v3) as v3 from (select sum(v3) as v3 from keys group by id1, id2, id3, id4, id5, id6)",
    },
    "rows of one of many texts": {
      pipeline: [{ $match: { id3: "id0000000077" } }, { $project: { _id: 0, time: 1, v3: 1 } }],
      sql: "select time, v3 from keys where id3 = 'id0000000077'",
      keys: ["time"],
    },
    "count by a prefix of many texts": {
      pipeline: [{ $match: { id3: /^id000000007/ } }, { $count: "n" }],
      sql: "select count(*)::integer as n from keys where id3 like 'id000000007%'",
    },
    "how many integers": {
      pipeline: [{ $group: { _id: "$id6" } }, { $count: "n" }],
      sql: "select count(distinct id6)::integer as n from keys",
    },
    "by two texts as one": {
      pipeline: [{ $group: { _id: { $concat: ["$id1", "-", "$id2"] }, v3: sum("v3") } }],
      sql: "select id1 || '-' || id2 as _id, sum(v3) as v3 from keys group by all",
    },
    "by a part of many texts": {
      pipeline: [{ $group: { _id: { $substrCP: ["$id3", 8, 2] }, v3: sum("v3") } }],
      sql: "select substr(id3, 9, 2) as _id, sum(v3) as v3 from keys group by all",
    },
  },
};

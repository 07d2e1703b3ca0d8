// Payments: decimals of one exponent, ids, and a fee that is often null, which closes buckets: three rows in each.

import { START, generator } from "../tsbs/random.mjs";
import { Decimal128, ObjectId } from "../../js/node_modules/bson/lib/bson.node.mjs";

const ROWS = 150_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const payments = {
  name: "payments",
  meta: "merchant",
  rows() {
    const random = generator("payments");
    const accounts = Array.from({ length: 5000 }, (_, n) => new ObjectId(n.toString(16).padStart(24, "0")));
    return Array.from({ length: ROWS }, (_, row) => {
      const cents = 100 + Math.floor(Math.exp(6 + random.normal() * 1.5));
      return {
        time: new Date(START + row * 2000 + random.below(1500)),
        merchant: `m${random.below(250)}`,
        account: accounts[random.below(5000)],
        amount: Decimal128.fromString((cents / 100).toFixed(2)),
        cents,
        fee: random.next() < 0.2 ? null : Math.round(cents * 0.029) / 100,
        currency: random.of(["EUR", "EUR", "USD", "JPY", "GBP"]),
        ok: random.next() < 0.93,
        method: random.of(["card", "card", "sepa", "wallet"]),
        risk: Math.round(random.next() * 1000) / 1000,
        lines: 1 + random.below(12),
      };
    });
  },
  columns: {
    time: "bigint",
    merchant: "varchar",
    account: "varchar",
    amount: "decimal(18,2)",
    cents: "integer",
    fee: "double",
    currency: "varchar",
    ok: "boolean",
    method: "varchar",
    risk: "double",
    lines: "integer",
  },
  /** The value of a column of SQL. */
  cell: (row, c) => (row[c] instanceof Date ? row[c].getTime() : row[c] === null ? "" : row[c].toString()),
  queries: {
    "sum of decimals by currency": {
      pipeline: [{ $group: { _id: "$currency", amount: { $sum: "$amount" } } }, { $project: { amount: { $toDouble: "$amount" } } }],
      sql: `select currency as _id, sum(amount)::double as amount from payments group by all`,
    },
    "mean of decimals by merchant": {
      pipeline: [{ $group: { _id: "$merchant", amount: { $avg: "$amount" } } }, { $project: { amount: { $toDouble: "$amount" } } }],
      sql: `select merchant as _id, avg(amount)::double as amount from payments group by all`,
    },
    "greatest decimal by day": {
      pipeline: [
        { $group: { _id: { $dateTrunc: { date: "$time", unit: "day" } }, amount: { $max: "$amount" } } },
        { $project: { amount: { $toDouble: "$amount" } } },
      ],
      sql: `select time // ${DAY_MS} * ${DAY_MS} as _id, max(amount)::double as amount from payments group by all`,
    },
    "above a decimal": {
      pipeline: [{ $match: { amount: { $gt: Decimal128.fromString("50") } } }, { $group: { _id: "$method", n: { $sum: 1 } } }],
      sql: `select method as _id, count(*)::integer as n from payments where amount > 50 group by all`,
    },
    "above a number": {
      pipeline: [{ $match: { amount: { $gt: 50 } } }, { $group: { _id: "$method", n: { $sum: 1 } } }],
      sql: `select method as _id, count(*)::integer as n from payments where amount > 50 group by all`,
    },
    "decimal as double": {
      pipeline: [{ $group: { _id: "$merchant", amount: { $sum: { $toDouble: "$amount" } } } }],
      sql: `select merchant as _id, sum(amount::double) as amount from payments group by all`,
    },
    "tax of decimals": {
      pipeline: [
        { $group: { _id: "$currency", tax: { $sum: { $multiply: ["$amount", Decimal128.fromString("0.19")] } } } },
        { $project: { tax: { $toDouble: "$tax" } } },
      ],
      sql: `select currency as _id, sum(amount * 0.19)::double as tax from payments group by all`,
    },
    "ten greatest amounts": {
      pipeline: [{ $sort: { amount: -1, time: 1 } }, { $limit: 10 }, { $project: { _id: 0, time: 1, cents: 1 } }],
      sql: `select time, cents from payments order by amount desc, time limit 10`,
      keys: ["time"],
    },
    "sum of cents by account": {
      pipeline: [{ $group: { _id: "$account", cents: { $sum: "$cents" } } }, { $group: { _id: null, most: { $max: "$cents" } } }, { $project: { _id: 0 } }],
      sql: `select max(cents)::double as most from (select sum(cents) as cents from payments group by account)`,
    },
    "accounts a currency": {
      pipeline: [{ $group: { _id: { c: "$currency", a: "$account" } } }, { $group: { _id: "$_id.c", n: { $sum: 1 } } }],
      sql: `select currency as _id, count(distinct account)::integer as n from payments group by all`,
    },
    "rows of an account": {
      pipeline: [
        { $match: { account: new ObjectId((77).toString(16).padStart(24, "0")) } },
        { $sort: { time: 1 } },
        { $project: { _id: 0, time: 1, cents: 1 } },
      ],
      sql: `select time, cents from payments where account = '${(77).toString(16).padStart(24, "0")}' order by time`,
      keys: ["time"],
    },
    "share that failed by method": {
      pipeline: [{ $group: { _id: "$method", bad: { $avg: { $cond: ["$ok", 0, 1] } } } }],
      sql: `select method as _id, avg(case when ok then 0 else 1 end) as bad from payments group by all`,
    },
    "failed by hour": {
      pipeline: [{ $match: { ok: false } }, { $group: { _id: { $hour: "$time" }, n: { $sum: 1 } } }],
      sql: `select hour(make_timestamp(time * 1000)) as _id, count(*)::integer as n from payments where not ok group by all`,
    },
    "fees where known": {
      pipeline: [{ $match: { fee: { $ne: null } } }, { $group: { _id: "$merchant", fee: { $sum: "$fee" } } }],
      sql: `select merchant as _id, sum(fee) as fee from payments where fee is not null group by all`,
    },
    "fees or zero": {
      pipeline: [{ $group: { _id: "$currency", fee: { $avg: { $ifNull: ["$fee", 0] } } } }],
      sql: `select currency as _id, avg(coalesce(fee, 0)) as fee from payments group by all`,
    },
    "two currencies and a method by day": {
      pipeline: [
        { $match: { currency: { $in: ["USD", "JPY"] }, method: "card" } },
        { $group: { _id: { $dateTrunc: { date: "$time", unit: "day" } }, cents: { $sum: "$cents" } } },
      ],
      sql: `select time // ${DAY_MS} * ${DAY_MS} as _id, sum(cents)::double as cents from payments where currency in ('USD', 'JPY') and method = 'card' group by all`,
    },
    "risk above of few merchants": {
      pipeline: [{ $match: { merchant: { $in: ["m1", "m20", "m77"] }, risk: { $gt: 0.9 } } }, { $project: { _id: 0, time: 1, risk: 1, merchant: 1 } }],
      sql: `select time, risk, merchant from payments where merchant in ('m1', 'm20', 'm77') and risk > 0.9`,
      keys: ["time", "merchant"],
    },
    "running sum by merchant": {
      pipeline: [
        {
          $setWindowFields: {
            partitionBy: "$merchant",
            sortBy: { time: 1 },
            output: { run: { $sum: "$cents", window: { documents: ["unbounded", "current"] } } },
          },
        },
        { $group: { _id: "$merchant", run: { $max: "$run" } } },
      ],
      sql: `select merchant as _id, max(run)::double as run from (select merchant, sum(cents) over (partition by merchant order by time rows unbounded preceding) as run from payments) group by all`,
    },
    "mean of last hour": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$merchant", sortBy: { time: 1 }, output: { m: { $avg: "$cents", window: { range: [-1, 0], unit: "hour" } } } } },
        { $group: { _id: "$merchant", m: { $max: "$m" } } },
      ],
      sql: `select merchant as _id, max(m) as m from (select merchant, avg(cents) over (partition by merchant order by time range between ${HOUR_MS} preceding and current row) as m from payments) group by all`,
    },
    "rank of merchants by day": {
      pipeline: [
        { $group: { _id: { m: "$merchant", d: { $dateTrunc: { date: "$time", unit: "day" } } }, cents: { $sum: "$cents" } } },
        { $setWindowFields: { partitionBy: "$_id.d", sortBy: { cents: -1 }, output: { rank: { $rank: {} } } } },
        { $match: { rank: { $lte: 3 } } },
        { $project: { _id: 0, m: "$_id.m", d: "$_id.d", rank: 1 } },
      ],
      sql: `select m, d, rank::integer as rank from (select m, d, rank() over (partition by d order by cents desc) as rank from (select merchant as m, time // ${DAY_MS} * ${DAY_MS} as d, sum(cents) as cents from payments group by all)) where rank <= 3`,
      keys: ["m", "d"],
    },
    "deviation of cents by merchant": {
      pipeline: [{ $group: { _id: "$merchant", d: { $stdDevSamp: "$cents" } } }],
      sql: `select merchant as _id, stddev_samp(cents) as d from payments group by all`,
    },
    "by lines and currency": {
      pipeline: [{ $group: { _id: { l: "$lines", c: "$currency" }, cents: { $avg: "$cents" } } }],
      sql: `select lines as l, currency as c, avg(cents) as cents from payments group by all`,
      keys: ["l", "c"],
    },
    "per line": {
      pipeline: [{ $group: { _id: "$currency", x: { $avg: { $divide: ["$cents", "$lines"] } } } }],
      sql: `select currency as _id, avg(cents / lines) as x from payments group by all`,
    },
    "logs of cents": {
      pipeline: [{ $group: { _id: { $floor: { $log10: "$cents" } }, n: { $sum: 1 } } }],
      sql: `select floor(log10(cents)) as _id, count(*)::integer as n from payments group by all`,
    },
    "amount times risk": {
      pipeline: [{ $match: { $expr: { $gt: [{ $multiply: ["$cents", "$risk"] }, 20000] } } }, { $group: { _id: "$merchant", n: { $sum: 1 } } }],
      sql: `select merchant as _id, count(*)::integer as n from payments where cents * risk > 20000 group by all`,
    },
    "currency and method as one": {
      pipeline: [{ $group: { _id: { $concat: ["$currency", "/", "$method"] }, n: { $sum: 1 } } }],
      sql: `select currency || '/' || method as _id, count(*)::integer as n from payments group by all`,
    },
    "cents as text": {
      pipeline: [{ $group: { _id: { $toString: "$lines" }, n: { $sum: 1 } } }],
      sql: `select lines::varchar as _id, count(*)::integer as n from payments group by all`,
    },
    "read all of a day": {
      pipeline: [{ $match: { time: { $gte: new Date(START), $lt: new Date(START + DAY_MS) } } }, { $project: { _id: 0, time: 1, cents: 1, currency: 1 } }],
      sql: `select time, cents, currency from payments where time >= ${START} and time < ${START + DAY_MS}`,
      keys: ["time", "cents"],
    },
    "merchant names like": {
      pipeline: [{ $match: { merchant: /^m1/ } }, { $group: { _id: "$merchant", n: { $sum: 1 } } }],
      sql: `select merchant as _id, count(*)::integer as n from payments where merchant like 'm1%' group by all`,
    },
  },
};

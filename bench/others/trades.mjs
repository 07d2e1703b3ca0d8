// Trades of fifty stocks at irregular times: prices as walks with two decimals, sizes over three orders of magnitude, a condition that most trades lack.

import { START, generator } from "../tsbs/random.mjs";

const SYMBOLS = Array.from({ length: 50 }, (_, n) => `S${String.fromCharCode(65 + (n % 26))}${n}`);
const EXCHANGES = [..."NQPZKDVYBCXM"];
const ROWS = 300_000;

function rows() {
  const random = generator("trades");
  const prices = SYMBOLS.map(() => 20 + random.next() * 300);
  let time = START;
  return Array.from({ length: ROWS }, () => {
    // No two trades have one time, so that the first and the last of a minute are the same for all engines.
    time += 1 + random.below(40);
    const at = Math.floor(Math.min(SYMBOLS.length - 1, -Math.log(1 - random.next()) * 12));
    prices[at] = Math.max(1, prices[at] + (random.next() - 0.5) * 0.1);
    const chance = random.next();
    return {
      time: new Date(time),
      stock: { symbol: SYMBOLS[at], sector: at % 7 },
      price: Math.round(prices[at] * 100) / 100,
      size: Math.ceil(Math.exp(random.normal() * 1.2 + 4)),
      exchange: random.of(EXCHANGES),
      ...(chance < 0.3 && { condition: chance < 0.1 ? "@T" : "I" }),
      buy: random.next() < 0.5,
    };
  });
}

const minute = { $dateTrunc: { date: "$time", unit: "minute" } };
const value = { $multiply: ["$price", "$size"] };
const bars = { open: { $first: "$price" }, high: { $max: "$price" }, low: { $min: "$price" }, close: { $last: "$price" }, volume: { $sum: "$size" } };
const BARS = "first(price order by time) as open, max(price) as high, min(price) as low, last(price order by time) as close, sum(size)::double as volume";
const MINUTE = "(time // 60000) * 60000";
const byTime = (output) => ({ $setWindowFields: { partitionBy: "$stock.symbol", sortBy: { time: 1 }, output } });

export const trades = {
  name: "trades",
  meta: "stock",
  rows,
  columns: { time: "bigint", symbol: "varchar", sector: "integer", price: "double", size: "integer", exchange: "varchar", condition: "varchar", buy: "boolean" },
  queries: {
    "bars of all by minute": {
      pipeline: [{ $sort: { "stock.symbol": 1, time: 1 } }, { $group: { _id: { symbol: "$stock.symbol", minute }, ...bars } }],
      sql: `select symbol, ${MINUTE} as minute, ${BARS} from trades group by all`,
      keys: ["symbol", "minute"],
    },
    "bars of one by minute": {
      pipeline: [{ $match: { "stock.symbol": "SF5" } }, { $sort: { time: 1 } }, { $group: { _id: minute, ...bars } }],
      sql: `select ${MINUTE} as _id, ${BARS} from trades where symbol = 'SF5' group by all`,
    },
    "weighted mean price": {
      pipeline: [{ $group: { _id: "$stock.symbol", value: { $sum: value }, volume: { $sum: "$size" } } }, { $project: { price: { $divide: ["$value", "$volume"] } } }],
      sql: "select symbol as _id, sum(price * size) / sum(size) as price from trades group by all",
    },
    "by exchange": {
      pipeline: [{ $group: { _id: "$exchange", n: { $sum: 1 }, volume: { $sum: "$size" } } }],
      sql: "select exchange as _id, count(*)::integer as n, sum(size)::double as volume from trades group by all",
    },
    "by exchange and stock": {
      pipeline: [{ $group: { _id: { exchange: "$exchange", symbol: "$stock.symbol" }, n: { $sum: 1 }, size: { $avg: "$size" } } }],
      sql: "select exchange, symbol, count(*)::integer as n, avg(size) as size from trades group by all",
      keys: ["exchange", "symbol"],
    },
    "by a condition that most lack": {
      pipeline: [{ $group: { _id: "$condition", n: { $sum: 1 }, price: { $avg: "$price" } } }],
      sql: "select condition as _id, count(*)::integer as n, avg(price) as price from trades group by all",
    },
    "volume bought less sold": {
      pipeline: [{ $group: { _id: "$stock.symbol", volume: { $sum: { $cond: ["$buy", "$size", { $multiply: [-1, "$size"] }] } } } }],
      sql: "select symbol as _id, sum(case when buy then size else -size end)::double as volume from trades group by all",
    },
    "ten of greatest value": {
      pipeline: [{ $project: { _id: 0, time: 1, value } }, { $sort: { value: -1, time: 1 } }, { $limit: 10 }],
      sql: "select time, price * size as value from trades order by value desc, time limit 10",
      keys: ["time"],
    },
    "ten of greatest size": {
      pipeline: [{ $sort: { size: -1, time: 1 } }, { $limit: 10 }, { $project: { _id: 0, time: 1, size: 1 } }],
      sql: "select time, size from trades order by size desc, time limit 10",
      keys: ["time"],
    },
    "count of large ones on two exchanges": {
      pipeline: [{ $match: { size: { $gt: 500 }, exchange: { $in: ["N", "Q"] } } }, { $count: "n" }],
      sql: "select count(*)::integer as n from trades where size > 500 and exchange in ('N', 'Q')",
    },
    "count of great value by stock": {
      pipeline: [{ $match: { $expr: { $gt: [value, 200_000] } } }, { $group: { _id: "$stock.symbol", n: { $sum: 1 } } }],
      sql: "select symbol as _id, count(*)::integer as n from trades where price * size > 200000 group by all",
    },
    "mean step of the price": {
      pipeline: [byTime({ last: { $shift: { output: "$price", by: -1 } } }), { $group: { _id: "$stock.symbol", step: { $avg: { $abs: { $subtract: ["$price", "$last"] } } } } }],
      sql: "select symbol as _id, avg(abs(step)) as step from (select symbol, price - lag(price) over (partition by symbol order by time) as step from trades) group by all",
    },
    "greatest mean of twenty": {
      pipeline: [byTime({ mean: { $avg: "$price", window: { documents: [-19, 0] } } }), { $group: { _id: "$stock.symbol", mean: { $max: "$mean" } } }],
      sql: "select symbol as _id, max(mean) as mean from (select symbol, avg(price) over (partition by symbol order by time rows between 19 preceding and current row) as mean from trades) group by all",
    },
    "by price": {
      pipeline: [{ $group: { _id: { $floor: { $divide: ["$price", 10] } }, n: { $sum: 1 } } }],
      sql: "select floor(price / 10) as _id, count(*)::integer as n from trades group by all",
    },
    "by classes of size": {
      pipeline: [{ $bucket: { groupBy: "$size", boundaries: [0, 10, 50, 100, 500, 1e9], output: { n: { $sum: 1 }, price: { $avg: "$price" } } } }],
      sql: "select case when size < 10 then 0 when size < 50 then 10 when size < 100 then 50 when size < 500 then 100 else 500 end as _id, count(*)::integer as n, avg(price) as price from trades group by all",
    },
    "by second": {
      pipeline: [{ $group: { _id: { $dateTrunc: { date: "$time", unit: "second" } }, n: { $sum: 1 }, price: { $avg: "$price" } } }],
      sql: "select (time // 1000) * 1000 as _id, count(*)::integer as n, avg(price) as price from trades group by all",
    },
    "exchanges of each stock": {
      pipeline: [{ $group: { _id: { symbol: "$stock.symbol", exchange: "$exchange" } } }, { $group: { _id: "$_id.symbol", n: { $sum: 1 } } }],
      sql: "select symbol as _id, count(distinct exchange)::integer as n from trades group by all",
    },
    "last price of each": {
      pipeline: [{ $sort: { "stock.symbol": 1, time: 1 } }, { $group: { _id: "$stock.symbol", price: { $last: "$price" } } }],
      sql: "select symbol as _id, last(price order by time) as price from trades group by all",
    },
    "deviations by sector": {
      pipeline: [{ $group: { _id: "$stock.sector", price: { $stdDevPop: "$price" }, size: { $stdDevSamp: "$size" } } }],
      sql: "select sector as _id, stddev_pop(price) as price, stddev_samp(size) as size from trades group by all",
    },
  },
};

// What a live query costs the engine when new rows arrive, beside running the same query again, in Node and in memory.
//
//   node bench/live-queries-engine.mjs [--rows 1000000] [--rounds 30] [--clock cpu]

import { parseArgs } from "node:util";
import { open } from "../js/dist/node.js";

const { values: args } = parseArgs({ options: { rows: { type: "string", default: "1000000" }, rounds: { type: "string", default: "30" }, clock: { type: "string", default: "wall" } } });
const CLOCKS = { wall: () => performance.now(), cpu: () => process.cpuUsage().user / 1000 };
const clock = CLOCKS[args.clock];
if (clock === undefined) throw new Error(`--clock is ${Object.keys(CLOCKS).join(" or ")}`);
const SERIES = 10;
const NEW_ROWS = 1000;
const FIRST_MS = Date.UTC(2026, 0, 1);

const hour = { $dateTrunc: { date: "$at", unit: "hour" } };
const QUERIES = {
  "hourly avg, min, max of 10 series": {
    aggregate: "plant",
    pipeline: [{ $group: { _id: { station: "$station.id", at: hour }, avg: { $avg: "$temp" }, min: { $min: "$temp" }, max: { $max: "$temp" } } }],
    cursor: { batchSize: 100_000 },
  },
  "newest row of 10 series": {
    aggregate: "plant",
    pipeline: [{ $sort: { at: 1 } }, { $group: { _id: "$station.id", at: { $last: "$at" }, temp: { $last: "$temp" } } }],
    cursor: {},
  },
  "newest 100 rows of one series": { find: "plant", filter: { "station.id": 7 }, sort: { at: -1 }, limit: 100, batchSize: 1000 },
  "rows of a closed hour": { find: "plant", filter: { at: { $gte: new Date(FIRST_MS), $lt: new Date(FIRST_MS + 3_600_000) } }, batchSize: 100_000 },
};

const db = await open("live-queries", { storage: "memory" });
const plant = await db.createCollection("plant", { timeseries: { timeField: "at", metaField: "station", granularity: "seconds" } });
let second = 0;
/** Inserts rows: one per second for each series. */
async function insert(rows) {
  for (let id = 0; id < SERIES; id++) {
    const count = rows / SERIES;
    const at = Float64Array.from({ length: count }, (_, n) => FIRST_MS + (second + n) * 1000);
    const temp = Float64Array.from({ length: count }, (_, n) => Math.round(1000 * Math.sin((second + n) / 5000 + id)) / 100);
    await plant.insertColumns({ at, temp }, { meta: { id } });
  }
  second += rows / SERIES;
}
for (let rows = 0; rows < Number(args.rows); rows += 10_000) await insert(10_000);
await db.command({ flush: 1 });

const live = {};
for (const [name, query] of Object.entries(QUERIES)) {
  const { id, mode } = await db.command({ liveQuery: 1, query });
  live[name] = { id, mode, updates: [], fresh: [], how: {} };
  await db.command({ liveRefresh: id });
}
const median = (of) => of.toSorted((a, b) => a - b)[of.length >> 1];
const timed = async (into, command) => {
  const began = clock();
  const reply = await db.command(command);
  into.push(clock() - began);
  return reply;
};
for (let round = 0; round < Number(args.rounds); round++) {
  await insert(NEW_ROWS);
  for (const [name, query] of Object.entries(QUERIES)) {
    const { id, updates, fresh, how } = live[name];
    const reply = await timed(updates, { liveRefresh: id });
    how[reply.live.how] = (how[reply.live.how] ?? 0) + 1;
    const again = await timed(fresh, query);
    if (reply.live.changed && reply.cursor.firstBatch.length !== again.cursor.firstBatch.length) throw new Error(`${name}: another result`);
  }
}
console.log(`${args.rows} rows, ${NEW_ROWS} new ones between two updates; medians of ${args.rounds}, in ms (${args.clock} clock)\n`);
console.log("| query | update | fresh query | how |\n|---|---|---|---|");
for (const [name, { updates, fresh, how }] of Object.entries(live)) {
  const ways = Object.entries(how).map(([way, count]) => `${way} ${count}`);
  console.log(`| ${name} | ${median(updates).toFixed(2)} | ${median(fresh).toFixed(2)} | ${ways.join(", ")} |`);
}

// Many queries: one command that refreshes all of them, compared with one command for each. The rounds of both take turns.
const MANY = {
  "100 queries of newest rows": (n) => ({ find: "plant", filter: { "station.id": n % SERIES }, sort: { at: -1 }, limit: 100 - Math.floor(n / SERIES), batchSize: 1000 }),
  "100 queries of six minutes in the past": (n) => ({ find: "plant", filter: { "station.id": n % SERIES, at: { $gte: new Date(FIRST_MS), $lt: new Date(FIRST_MS + 360_000) } }, sort: { at: 1 }, batchSize: 1000 }),
};
console.log("\n| 100 queries, and a new row of each series between two updates | together | one by one | news of |\n|---|---|---|---|");
for (const [name, query] of Object.entries(MANY)) {
  const ids = [];
  for (let n = 0; n < 100; n++) {
    const { id } = await db.command({ liveQuery: 1, query: query(n) });
    await db.command({ liveRefresh: id });
    ids.push(id);
  }
  const [together, alone] = [[], []];
  let news = 0;
  for (let round = 0; round < Number(args.rounds); round++) {
    await insert(SERIES);
    news = (await timed(together, { liveRefresh: ids })).live.length;
    await insert(SERIES);
    const began = clock();
    for (const id of ids) await db.command({ liveRefresh: id });
    alone.push(clock() - began);
  }
  for (const id of ids) await db.command({ liveClose: id });
  console.log(`| ${name} | ${median(together).toFixed(2)} | ${median(alone).toFixed(2)} | ${news} |`);
}
await db.close();

// The queries of `others.mjs`, by timepail alone, in other states than after a fold, in memory, asked again: rows that are not folded, rows of which the first half is,
// smaller read caches, and the first two queries of a database that was just opened. Answers are compared with those after a fold.
//
//   node bench/states.mjs [--rounds 3] [--clock cpu] [--data trades,pods] [--only text,text] [--states unfolded,half,40,8,cold,second] [--dist folder] [--json file]

import { resolve } from "node:path";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { devices } from "./others/devices.mjs";
import { events } from "./others/events.mjs";
import { keys } from "./others/keys.mjs";
import { meters } from "./others/meters.mjs";
import { payments } from "./others/payments.mjs";
import { pods } from "./others/pods.mjs";
import { requests } from "./others/requests.mjs";
import { rides } from "./others/rides.mjs";
import { stations } from "./others/stations.mjs";
import { trades } from "./others/trades.mjs";
import { visits } from "./others/visits.mjs";
import { sortedStorage } from "./states/storage.mjs";
import { CLOCKS, difference, geometricMean, median, timed, warm } from "./tsbs/compare.mjs";

const { values: args } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    clock: { type: "string", default: "wall" },
    data: { type: "string" },
    only: { type: "string" },
    states: { type: "string", default: "unfolded,half,40,8,cold,second" },
    dist: { type: "string", default: new URL("../js/dist", import.meta.url).pathname },
    json: { type: "string" },
  },
});
const clock = CLOCKS[args.clock];
if (clock === undefined) throw new Error(`--clock is ${Object.keys(CLOCKS).join(" or ")}`);
const { open } = await import(pathToFileURL(resolve(args.dist, "node.js")).href);
const named = args.data?.split(",");
const wanted = args.only?.toLowerCase().split(",");
const states = args.states.split(",");
const ROWS_AT_ONCE = 20_000;
const WARM_ASKS = 8;
const rounds = Number(args.rounds);

const collectionOf = (db, { name, meta }) => db.createCollection(name, { timeseries: { timeField: "time", ...(meta && { metaField: meta }) } });

async function insert(collection, rows) {
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) await collection.insertMany(rows.slice(start, start + ROWS_AT_ONCE));
}

/** Opens a database with these rows, of which those before `folded` are folded. */
async function filled(data, rows, folded, options) {
  const db = await open("states", options);
  const collection = await collectionOf(db, data);
  await insert(collection, rows.slice(0, folded));
  if (folded > 0) await db.flush();
  if (folded < rows.length) await insert(collection, rows.slice(folded));
  return db;
}

const cacheOf = (mib) => ({ storage: "memory", parameters: { readCacheBytes: mib * 2 ** 20 } });
const fill = {
  folded: (data, rows) => filled(data, rows, rows.length, { storage: "memory" }),
  unfolded: (data, rows) => filled(data, rows, 0, { storage: "memory" }),
  half: (data, rows) => filled(data, rows, rows.length >> 1, { storage: "memory" }),
};

/** The answers and the times of the first query and of the second, each time after the database was opened again. */
async function cold(storage, data, query) {
  const times = { cold: [], second: [] };
  let answer;
  for (let round = 0; round <= rounds; round++) {
    const db = await open("states", { storage });
    // Loads both halves of the module and the catalog, but no bucket.
    await db.collection(data.name).aggregate([{ $match: { time: new Date(0) } }, { $group: { _id: null } }]).toArray();
    for (const state of ["cold", "second"]) {
      const before = clock();
      answer = await db.collection(data.name).aggregate(query.pipeline).toArray();
      if (round > 0) times[state].push(clock() - before);
    }
    await db.close();
  }
  return { answer, times };
}

const short = (value) => (value < 10 ? value.toPrecision(2) : value.toFixed(0));
const results = [];
console.log(`| data | query | folded, ms | ${states.map((state) => `× ${state}`).join(" | ")} |\n|---|---|---|${states.map(() => "---|").join("")}`);
for (const data of [trades, keys, rides, pods, stations, meters, visits, payments, devices, events, requests].filter(({ name }) => named?.includes(name) ?? true)) {
  const rows = data.rows();
  const dbs = new Map();
  const warmStates = ["folded", ...states.filter((state) => state !== "cold" && state !== "second")];
  for (const state of warmStates) dbs.set(state, await (fill[state]?.(data, rows) ?? filled(data, rows, rows.length, cacheOf(Number(state)))));
  const storage = sortedStorage();
  const hasCold = states.some((state) => state === "cold" || state === "second");
  if (hasCold) await (await filled(data, rows, rows.length, { storage })).close();
  for (const [name, query] of Object.entries(data.queries)) {
    if (!(wanted?.some((text) => name.toLowerCase().includes(text)) ?? true)) continue;
    const times = Object.fromEntries(warmStates.map((state) => [state, []]));
    const answers = {};
    for (let round = 0; round <= rounds; round++) {
      for (const state of round % 2 ? warmStates : warmStates.toReversed()) {
        const ask = () => dbs.get(state).collection(data.name).aggregate(query.pipeline).toArray();
        // What stays in memory takes several queries to get there.
        for (let asked = 0; round === 0 && asked < WARM_ASKS; asked++) await ask();
        if (round === 0) await warm(ask);
        const { answer, ms } = await timed(ask, clock);
        answers[state] = answer;
        if (round > 0) times[state].push(ms);
      }
    }
    if (hasCold) {
      const found = await cold(storage, data, query);
      answers.cold = found.answer;
      Object.assign(times, found.times);
    }
    for (const [state, answer] of Object.entries(answers)) {
      const found = difference(answers.folded, answer, { keys: query.keys ?? ["_id"] });
      if (found === undefined) continue;
      console.error(`error: ${data.name}, ${name}, ${state}: ${found}`);
      process.exitCode = 1;
    }
    const ms = Object.fromEntries(Object.entries(times).map(([state, values]) => [state, median(values)]));
    results.push({ data: data.name, query: name, ms });
    console.log(`| ${data.name} | ${name} | ${short(ms.folded)} | ${states.map((state) => short(ms[state] / ms.folded)).join(" | ")} |`);
  }
  for (const db of dbs.values()) await db.close();
}
for (const state of states) {
  const found = results.map(({ data, query, ms }) => ({ data, query, ratio: ms[state] / ms.folded, ms: ms[state] }));
  console.log(`\n${state}: geometric mean ${short(geometricMean(found.map(({ ratio }) => ratio)))}; more than 1.3: ${found.filter(({ ratio }) => ratio > 1.3).length} of ${found.length}`);
  for (const { data, query, ratio, ms } of found.toSorted((a, b) => b.ratio - a.ratio).slice(0, 12)) console.log(`  ${short(ratio)} × (${short(ms)} ms) ${data}: ${query}`);
}
if (args.json) writeFileSync(args.json, `${JSON.stringify({ rounds, clock: args.clock, results }, null, 2)}\n`);

// Live queries of timepail, Dexie and RxDB over the same rows: one tab writes, another one follows.

import Dexie, { liveQuery } from "dexie";
import { open as openTimepail } from "timepail";
import { SERIES, readings } from "./data.js";
import { numbers, schemaOf } from "./rxdb-schema.js";

const START = Date.UTC(2024, 0, 1);
const HOUR = 3_600_000;

/** The time on a clock that both tabs share. */
const now = () => performance.timeOrigin + performance.now();
const meanOf = (rows) => rows.reduce((sum, { temp }) => sum + temp, 0) / rows.length;

async function timepail() {
  const db = await openTimepail("live-timepail", { durability: "relaxed" });
  const points = await db.createCollection("points", { timeseries: { timeField: "at", metaField: "sensor" } });
  const group = (from) => points.aggregate([{ $match: { at: { $gte: new Date(from) } } }, { $group: { _id: null, count: { $sum: 1 }, mean: { $avg: "$temp" }, at: { $max: "$at" } } }]);
  return {
    insert: (documents) => points.insertMany(documents, { ordered: false }),
    settle: () => db.flush(),
    newest: (sensor, limit, next) => points.find({ sensor }).sort({ at: -1 }).limit(limit).live().subscribe(next),
    past: (sensor, from, to, next) => points.find({ sensor, at: { $gte: new Date(from), $lt: new Date(to) } }).sort({ at: 1 }).live().subscribe(next),
    mean: (from, next) => group(from).live().subscribe(([row]) => next(row)),
  };
}

async function dexie() {
  const db = new Dexie("live-dexie", { chromeTransactionDurability: "relaxed" });
  db.version(1).stores({ points: "++id,[sensor+at],at" });
  const follow = (query, next) => {
    const subscription = liveQuery(query).subscribe(next);
    return () => subscription.unsubscribe();
  };
  return {
    insert: (documents) => db.points.bulkAdd(documents),
    settle: () => {},
    newest: (sensor, limit, next) => follow(() => db.points.where("[sensor+at]").between([sensor, Dexie.minKey], [sensor, Dexie.maxKey]).reverse().limit(limit).toArray(), next),
    past: (sensor, from, to, next) => follow(() => db.points.where("[sensor+at]").between([sensor, new Date(from)], [sensor, new Date(to)]).toArray(), next),
    mean: (from, next) =>
      follow(async () => {
        const rows = await db.points.where("at").aboveOrEqual(new Date(from)).toArray();
        return { count: rows.length, mean: meanOf(rows), at: rows.at(-1).at };
      }, next),
  };
}

/** Documents are JSON, so that times are numbers. */
async function rxdb() {
  const { createRxDatabase, getRxStorageDexie } = await import("rxdb");
  const db = await createRxDatabase({ name: "live-rxdb", storage: getRxStorageDexie({ chromeTransactionDurability: "relaxed" }), multiInstance: true, eventReduce: true });
  const { points } = await db.addCollections({ points: { schema: schemaOf(numbers("temp", "humidity", "pressure", "battery"), [["sensor", "at"], "at"]) } });
  const follow = (query, next) => {
    const subscription = points.find(query).$.subscribe((found) => found.length > 0 && next(found));
    return () => subscription.unsubscribe();
  };
  return {
    insert: async (documents) => {
      const { error } = await points.bulkInsert(documents.map((document) => ({ ...document, at: document.at.getTime() })));
      if (error.length > 0) throw new Error(`RxDB refused ${error.length} documents`);
    },
    settle: () => {},
    newest: (sensor, limit, next) => follow({ selector: { sensor }, sort: [{ sensor: "desc" }, { at: "desc" }], limit }, next),
    past: (sensor, from, to, next) => follow({ selector: { sensor, at: { $gte: from, $lt: to } }, sort: [{ sensor: "asc" }, { at: "asc" }] }, next),
    mean: (from, next) => follow({ selector: { at: { $gte: from } }, sort: [{ at: "asc" }] }, (rows) => next({ count: rows.length, mean: meanOf(rows), at: rows.at(-1).at })),
  };
}

const OPENERS = { timepail, dexie, rxdb };
let store;

/** Opens the store of that name in this tab. */
export async function open(name) {
  store = await OPENERS[name]();
}

/** Stores so many rows, a thousand a commit. */
export async function fill(rows) {
  for (let from = 0; from < rows; from += 1000) await store.insert(readings(1000, { start: START + (from / SERIES) * 1000, seed: from + 1 }));
  await store.settle();
}

/** Writes a row of each series, so many times, a pause after each; resolves to when each was asked for and acknowledged. */
export async function write(rows, changes, pauseMS) {
  const times = [];
  for (let change = 0; change < changes; change++) {
    const at = START + (rows / SERIES + change) * 1000;
    const asked = now();
    await store.insert(readings(SERIES, { start: at, seed: at }));
    times.push({ at, asked, acknowledged: now() });
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, pauseMS - (now() - asked))));
  }
  return times;
}

const seen = new Map();
let results = 0;
let stops = [];

/** Follows with `queries` live queries of a kind, those of newest rows with up to `limit` of them, and notes when the newest row of each change was first seen; resolves when all have a result. */
export async function follow(kind, queries, rows, limit) {
  seen.clear();
  const waiting = Array.from({ length: queries }, (_, n) => {
    return new Promise((resolve) => {
      const heard = (at) => {
        results++;
        if (n === 0 && !seen.has(+at)) seen.set(+at, now());
        resolve();
      };
      if (kind === "newest") stops.push(store.newest(`s${n % SERIES}`, Math.max(1, limit - Math.floor(n / SERIES)), (found) => heard(found[0].at)));
      else if (kind === "past") stops.push(store.past(`s${n % SERIES}`, START, START + HOUR / 10, (found) => heard(found.at(-1).at)));
      else stops.push(store.mean(START + (rows / SERIES) * 1000 - HOUR, ({ at }) => heard(at)));
    });
  });
  await Promise.all(waiting);
  results = 0;
}

/** Whether the change of that time was seen. */
export const hasSeen = (at) => seen.has(at);

/** Ends the live queries; resolves to the number of their results since the first ones, and when each change was seen. */
export function followed() {
  for (const stop of stops) stop();
  stops = [];
  return { results, seen: [...seen] };
}

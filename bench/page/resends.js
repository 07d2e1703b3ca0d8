// A hundred thousand measurements sent once and sent again, into stores that keep each of them once.

import Dexie from "dexie";
import { open } from "timepail";
import { readings } from "./data.js";

const COMMIT = 1000;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function timepail(name, options) {
  const db = await open(name, { storage: "indexeddb", durability: "relaxed" });
  const points = await db.createCollection("points", { timeseries: { timeField: "at", metaField: "sensor" }, ...options });
  return {
    insert: (documents) => points.insertMany(documents, { ordered: false }),
    settle: () => db.flush(),
    count: () => points.countDocuments(),
    means: () => points.aggregate([{ $group: { _id: "$sensor", temp: { $avg: "$temp" } } }]).toArray(),
    newest: () => points.find().sort({ at: -1 }).limit(10).toArray(),
    hour: (sensor, at) => points.find({ sensor, at: { $gte: new Date(+at - 3_600_000), $lt: at } }).toColumns(),
    bytes: async () => (await db.command({ collStats: "points" })).size,
    close: () => db.close(),
  };
}

async function dexie(name) {
  const db = new Dexie(name, { chromeTransactionDurability: "relaxed" });
  db.version(1).stores({ points: "[sensor+at],at" });
  return { insert: (documents) => db.points.bulkPut(documents), settle: () => {}, count: () => db.points.count(), close: () => db.close() };
}

const STORES = {
  plain: (name) => timepail(name),
  dedupe: (name) => timepail(name, { dedupe: {} }),
  dexie,
};

/** Resolves to medians in milliseconds, `{ task: { store: ms } }`, and bytes. */
export async function resends({ points, rounds, log }) {
  const documents = readings(points);
  const last = documents.at(-1).at;
  const times = {};
  const bytes = {};
  const note = (task, store, ms) => ((times[task] ??= {})[store] ??= []).push(ms);
  const timed = async (task, store, work) => {
    const begin = performance.now();
    const value = await work();
    note(task, store, performance.now() - begin);
    return value;
  };
  const fastest = async (task, store, work) => {
    let least = Infinity;
    for (let i = 0; i < 5; i++) {
      const begin = performance.now();
      await work();
      least = Math.min(least, performance.now() - begin);
    }
    note(task, store, least);
  };
  const send = async (store) => {
    for (let i = 0; i < points; i += COMMIT) await store.insert(documents.slice(i, i + COMMIT).map((document) => ({ ...document })));
  };
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(STORES);
    for (const name of round % 2 ? names : names.toReversed()) {
      const store = await STORES[name](`resends-${name}-${round}`);
      await timed("sent once", name, () => send(store));
      if (store.means) {
        await fastest("means of each, not folded", name, store.means);
        await fastest("newest ten, not folded", name, store.newest);
        await fastest("an hour of one, not folded", name, () => store.hour(documents[0].sensor, last));
      }
      await timed("fold", name, () => store.settle());
      bytes[`${name}, sent once`] = await store.bytes?.();
      if (store.means) {
        await fastest("means of each, folded", name, store.means);
        await fastest("an hour of one, folded", name, () => store.hour(documents[0].sensor, last));
      }
      if (name !== "plain") {
        await timed("sent again", name, () => send(store));
        if (store.means) await fastest("means of each, right after", name, store.means);
        await timed("fold again", name, () => store.settle());
        if ((await store.count()) !== points) throw new Error(`${name} has ${await store.count()} measurements`);
        bytes[`${name}, sent twice`] = await store.bytes?.();
      }
      await store.close();
      log(`round ${round + 1}: ${name}`);
    }
  }
  const medians = Object.fromEntries(Object.entries(times).map(([task, of]) => [task, Object.fromEntries(Object.entries(of).map(([name, all]) => [name, median(all)]))]));
  return { medians, bytes };
}

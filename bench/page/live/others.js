// The most frequent queries of a dashboard, and a single insert: timepail with rows in journals and in buckets, Dexie, RxDB, and SQLite in WebAssembly.
//
// A store has `insert(documents)`, `newest(ids)` and `window(ids, from)`, which resolve to rows with `at` and `value`.

import Dexie from "dexie";
import { open } from "timepail";
import { median } from "./measure.js";
import { Plant, timeseries } from "./plant.js";
import { numbers, schemaOf } from "../rxdb-schema.js";

const WINDOW_MS = 300_000;
const SINGLES = 100;
const TURN = 20;
/** Rows per insert for the other stores, whose stored form does not depend on it. */
const LARGE_COMMIT = 1000;

const each = (ids, ask) => Promise.all(ids.map(ask));
const flat = ({ at, sensor, ...rest }) => ({ at, sensor: sensor.id, ...rest });
const FIRST = { at: { $first: "$at" }, value: { $first: "$value" } };

async function timepail(isFolded) {
  const db = await open(`others-${isFolded ? "buckets" : "journals"}`, { storage: "indexeddb", durability: "relaxed" });
  const points = await db.createCollection("points", { timeseries });
  const of = (id, from) => points.find({ "sensor.id": id, at: { $gt: new Date(from) } }).sort({ at: 1 });
  return {
    perCommit: 20,
    insert: (documents) => points.insertMany(documents, { ordered: false }),
    settle: () => isFolded && db.flush(),
    newest: async () => points.aggregate([{ $sort: { at: -1 } }, { $group: { _id: "$sensor.id", ...FIRST } }]).toArray(),
    window: async (ids, from) => (await each(ids, (id) => of(id, from).toArray())).flat(),
    columns: (ids, from) => each(ids, (id) => of(id, from).project({ _id: 0, at: 1, value: 1 }).toColumns()),
    close: () => db.close(),
  };
}

async function dexie() {
  const db = new Dexie("others-dexie", { chromeTransactionDurability: "relaxed" });
  db.version(1).stores({ points: "++id,[sensor+at]" });
  const of = (id, from) => db.points.where("[sensor+at]").between([id, from], [id, Dexie.maxKey], false, true);
  return {
    insert: (documents) => db.points.bulkAdd(documents.map(flat)),
    newest: (ids) => each(ids, (id) => of(id, Dexie.minKey).last()),
    window: async (ids, from) => (await each(ids, (id) => of(id, new Date(from)).toArray())).flat(),
    close: () => db.close(),
  };
}

/** Documents are JSON, so that times are numbers. */
async function rxdb() {
  const { createRxDatabase, getRxStorageDexie } = await import("rxdb");
  const storage = getRxStorageDexie({ chromeTransactionDurability: "relaxed" });
  const db = await createRxDatabase({ name: "others-rxdb", storage, multiInstance: false });
  const { points } = await db.addCollections({ points: { schema: schemaOf({ ...numbers("value", "pressure"), status: { type: "string" } }, [["sensor", "at"]]) } });
  const plain = (found) => found.map(({ _data: { sensor, at, value, pressure, status } }) => ({ sensor, at: new Date(at), value, pressure, status }));
  const find = async (selector, order, limit) => plain(await points.find({ selector, sort: [{ sensor: order }, { at: order }], limit }).exec());
  return {
    insert: async (documents) => {
      const { error } = await points.bulkInsert(documents.map((document) => ({ ...flat(document), at: document.at.getTime() })));
      if (error.length > 0) throw new Error(`RxDB refused ${error.length} documents`);
    },
    newest: async (ids) => (await each(ids, (id) => find({ sensor: id }, "desc", 1))).flat(),
    window: async (ids, from) => (await each(ids, (id) => find({ sensor: id, at: { $gt: from } }, "asc"))).flat(),
    close: () => db.remove(),
  };
}

/** In a worker, on the disk. */
async function sqlite() {
  const worker = new Worker(new URL("./sqlite-worker.js", import.meta.url), { type: "module" });
  const answer = () =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.answers));
      worker.onerror = ({ message }) => reject(new Error(message));
    });
  const ask = (isWrite, statements) => {
    worker.postMessage({ isWrite, statements });
    return answer();
  };
  await answer();
  const dated = (answers) => answers.flatMap((rows) => rows.map((row) => ({ ...row, at: new Date(row.at) })));
  const row = ({ at, sensor, value, pressure, status }) => ["insert into points values (?, ?, ?, ?, ?)", sensor.id, at.getTime(), value, pressure, status];
  return {
    insert: (documents) => ask(true, documents.map(row)),
    newest: async (ids) => dated(await ask(false, ids.map((id) => ["select * from points where sensor = ? order by at desc limit 1", id]))),
    window: async (ids, from) => dated(await ask(false, ids.map((id) => ["select * from points where sensor = ? and at > ? order by at", id, from]))),
    close: async () => worker.terminate(),
  };
}

const OPENERS = {
  "timepail, in journals": () => timepail(false),
  "timepail, in buckets": () => timepail(true),
  Dexie: dexie,
  RxDB: rxdb,
  "SQLite (OPFS, worker)": sqlite,
};

/** The parts of rows in which two stores must agree. */
const summed = (rows) => rows.reduce((sum, { at, value }) => sum + value + (at.getTime() % 1e6), rows.length);

/** Resolves to `{ task: { store: median milliseconds } }`. */
export async function others({ options, rows, rounds, log }) {
  const stores = {};
  for (const [name, opener] of Object.entries(OPENERS)) {
    const store = (stores[name] = await opener());
    const plant = new Plant(options);
    while (plant.rows < rows) await store.insert(plant.next(store.perCommit ?? LARGE_COMMIT));
    await store.settle?.();
    log(`others: ${name} has ${rows} rows`);
  }
  const plant = new Plant(options);
  plant.next(rows);
  const ids = plant.sensors.map(({ id }) => id);
  const times = {};
  const note = (task, name, ms) => ((times[task] ??= {})[name] ??= []).push(ms);
  for (let round = -1; round < rounds; round++) {
    const turns = Object.entries(stores).map((_, i, all) => all[(i + round + 1) % all.length]);
    // Every store gets a new row first, because RxDB caches answers until something changes.
    const documents = plant.next();
    for (const [, store] of turns) {
      await store.insert(documents);
      await store.settle?.();
    }
    const tasks = {
      "newest of 20": (store) => store.newest(ids),
      "five minutes of 20, objects": (store) => store.window(ids, plant.now - WINDOW_MS),
    };
    for (const [task, ask] of Object.entries(tasks)) {
      let wanted;
      for (const [name, store] of turns) {
        const begin = performance.now();
        const found = await ask(store);
        const ms = performance.now() - begin;
        wanted ??= summed(found);
        if (Math.abs(summed(found) - wanted) > 1e-6 * wanted) throw new Error(`${name} says otherwise: ${task}`);
        if (round >= 0) note(task, name, ms);
      }
    }
    for (const [name, store] of turns.filter(([, { columns }]) => columns)) {
      const begin = performance.now();
      await store.columns(ids, plant.now - WINDOW_MS);
      if (round >= 0) note("five minutes of 20, columns", name, performance.now() - begin);
    }
  }
  log("others: asked");
  // In turns of twenty, so that slow phases affect every store.
  const spent = Object.fromEntries(Object.keys(stores).map((name) => [name, 0]));
  for (let done = 0; done < SINGLES; done += TURN) {
    const documents = plant.next(TURN);
    for (const [name, store] of Object.entries(stores)) {
      const begin = performance.now();
      for (const document of documents) await store.insert([document]);
      spent[name] += performance.now() - begin;
    }
  }
  for (const [name, ms] of Object.entries(spent)) note("one durable point", name, ms / SINGLES);
  for (const store of Object.values(stores)) await store.close();
  const medians = (of) => Object.fromEntries(Object.keys(OPENERS).map((name) => [name, of[name] && median(of[name])]));
  return Object.fromEntries(Object.entries(times).map(([task, of]) => [task, medians(of)]));
}

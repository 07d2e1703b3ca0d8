// The same tasks over five stores: timepail, one record per point in bare IndexedDB, Dexie, RxDB, and a simple bucket prototype.

import Dexie from "dexie";
import { open as openTimepail } from "timepail";
import { numbers, schemaOf } from "./rxdb-schema.js";

const FIELDS = ["temp", "humidity", "pressure", "battery"];
const HOUR = 3_600_000;

const request = (r) => new Promise((resolve, reject) => ((r.onsuccess = () => resolve(r.result)), (r.onerror = () => reject(r.error))));
const done = (tx) =>
  new Promise((resolve, reject) => ((tx.oncomplete = () => resolve()), (tx.onabort = () => reject(tx.error)), (tx.onerror = () => reject(tx.error))));

function openIdb(name, upgrade) {
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => upgrade(opening.result);
  return request(opening);
}

/** timepail: one time-series collection. `open` may be that of another build. */
export async function timepail(name, open = openTimepail) {
  const db = await open(name, { storage: "indexeddb", durability: "relaxed" });
  const points = await db.createCollection("points", { timeseries: { timeField: "at", metaField: "sensor" } });
  const range = (sensor, from, to) => ({ sensor, at: { $gte: new Date(from), $lt: new Date(to) } });
  return {
    insert: (documents) => (documents.length === 1 ? points.insertOne(documents[0]) : points.insertMany(documents, { ordered: false })),
    series: (sensor) => points.find({ sensor }).toArray(),
    seriesColumns: (sensor) => points.find({ sensor }).toColumns(),
    hour: (sensor, from) => points.find(range(sensor, from, from + HOUR)).toArray(),
    newest: (sensor) => points.findOne({ sensor }, { sort: { at: -1 } }),
    count: () => points.countDocuments(),
    deleteBefore: (time) => points.deleteMany({ at: { $lt: new Date(time) } }),
    settle: () => db.flush(),
    stats: () => db.command({ collStats: "points" }),
    close: () => db.close(),
  };
}

/** One record per point in bare IndexedDB, with an index on series and time. */
export async function bare(name) {
  const db = await openIdb(name, (db) => db.createObjectStore("points", { autoIncrement: true }).createIndex("by", ["sensor", "at"]));
  const write = () => db.transaction("points", "readwrite", { durability: "relaxed" });
  const all = (range) => request(db.transaction("points").objectStore("points").index("by").getAll(range));
  return {
    insert: (documents) => {
      const tx = write();
      const store = tx.objectStore("points");
      for (const document of documents) store.add(document);
      return done(tx);
    },
    series: (sensor) => all(IDBKeyRange.bound([sensor], [sensor, []])),
    seriesColumns: async (sensor) => toColumns(await all(IDBKeyRange.bound([sensor], [sensor, []]))),
    hour: (sensor, from) => all(IDBKeyRange.bound([sensor, new Date(from)], [sensor, new Date(from + HOUR)], false, true)),
    newest: (sensor) =>
      request(db.transaction("points").objectStore("points").index("by").openCursor(IDBKeyRange.bound([sensor], [sensor, []]), "prev")).then(({ value }) => value),
    count: () => request(db.transaction("points").objectStore("points").count()),
    close: () => db.close(),
  };
}

/**
 * What IndexedDB does for a single insert into timepail, without timepail: a put and the key of a marker, in a transaction that is sealed at once. Before it,
 * the page computes for `busyMs`.
 */
export async function byHand(name, busyMs = 0) {
  const db = await openIdb(name, (db) => db.createObjectStore("entries"));
  const write = () => db.transaction("entries", "readwrite", { durability: "relaxed" });
  const marker = new ArrayBuffer(10);
  const first = write();
  first.objectStore("entries").put(new ArrayBuffer(1), marker);
  await done(first);
  const busy = computation(busyMs);
  let n = 0;
  return {
    insert: async () => {
      busy();
      const key = new DataView(new ArrayBuffer(25));
      key.setFloat64(8, n++);
      const tx = write();
      const store = tx.objectStore("entries");
      const found = store.getKey(marker);
      store.put(new ArrayBuffer(200), key.buffer);
      tx.commit();
      await done(tx);
      if (found.result === undefined) throw new Error("The marker is gone");
    },
    close: () => db.close(),
  };
}

/** A function that computes for `ms`. The clock of a page is too coarse to look at it each time, so steps are counted. */
function computation(ms) {
  const steps = (count) => {
    let state = 1;
    for (let i = 0; i < count; i++) state = (Math.imul(state, 1103515245) + 12345) | 0;
    return state;
  };
  const PROBE = 1e7;
  steps(PROBE);
  const begin = performance.now();
  steps(PROBE);
  const count = Math.round((PROBE * ms) / (performance.now() - begin));
  return () => steps(count);
}

/** Dexie, as its documentation shows it. */
export async function dexie(name) {
  const db = new Dexie(name, { chromeTransactionDurability: "relaxed" });
  db.version(1).stores({ points: "++id,[sensor+at],at" });
  const between = (low, high) => db.points.where("[sensor+at]").between(low, high, true, false).toArray();
  return {
    insert: (documents) => db.points.bulkAdd(documents),
    series: (sensor) => between([sensor, Dexie.minKey], [sensor, Dexie.maxKey]),
    seriesColumns: async (sensor) => toColumns(await between([sensor, Dexie.minKey], [sensor, Dexie.maxKey])),
    hour: (sensor, from) => between([sensor, new Date(from)], [sensor, new Date(from + HOUR)]),
    newest: (sensor) => db.points.where("[sensor+at]").between([sensor, Dexie.minKey], [sensor, Dexie.maxKey]).last(),
    count: () => db.points.count(),
    deleteBefore: (time) => db.points.where("at").below(new Date(time)).delete(),
    close: () => db.close(),
  };
}

/** RxDB over its free storage, Dexie: documents are JSON, so times are numbers, and they need a primary key. */
export async function rxdb(name) {
  const { createRxDatabase, getRxStorageDexie } = await import("rxdb"); // large, so that other benchmarks go without
  const storage = getRxStorageDexie({ chromeTransactionDurability: "relaxed" });
  const db = await createRxDatabase({ name, storage, multiInstance: false });
  const { points } = await db.addCollections({ points: { schema: schemaOf(numbers(...FIELDS), [["sensor", "at"], "at"]) } });
  const plain = (found) => found.map(({ _data: { sensor, at, temp, humidity, pressure, battery } }) => ({ at: new Date(at), sensor, temp, humidity, pressure, battery }));
  const find = (selector, index) => points.find({ selector, index, sort: index.map((field) => ({ [field]: "asc" })) });
  const ofSeries = (selector) => find(selector, ["sensor", "at"]).exec().then(plain);
  return {
    insert: async (documents) => {
      const { error } = await points.bulkInsert(documents.map((document) => ({ ...document, at: document.at.getTime() })));
      if (error.length > 0) throw new Error(`RxDB refused ${error.length} documents`);
    },
    series: (sensor) => ofSeries({ sensor }),
    seriesColumns: async (sensor) => toColumns(await ofSeries({ sensor })),
    hour: (sensor, from) => ofSeries({ sensor, at: { $gte: from, $lt: from + HOUR } }),
    newest: (sensor) => points.findOne({ selector: { sensor }, sort: [{ sensor: "desc" }, { at: "desc" }] }).exec().then((found) => plain([found])[0]),
    count: () => points.count({ selector: {} }).exec(),
    deleteBefore: (time) => find({ at: { $lt: time } }, ["at"]).remove(),
    close: async () => {
      await db.close();
      for (const { name: stored } of await indexedDB.databases()) if (stored.includes(`-${name}-`)) indexedDB.deleteDatabase(stored);
    },
  };
}

/** A simple bucket prototype: typed arrays of up to 1000 rows per series; each commit rewrites the open one. */
export async function buckets(name) {
  const db = await openIdb(name, (db) => db.createObjectStore("buckets"));
  const open = new Map();
  const fresh = (start) => ({ start, count: 0, at: new Float64Array(1000), ...Object.fromEntries(FIELDS.map((f) => [f, new Float64Array(1000)])) });
  const cut = (b) => ({ count: b.count, at: b.at.slice(0, b.count), ...Object.fromEntries(FIELDS.map((f) => [f, b[f].slice(0, b.count)])) });
  const rows = (found, sensor, from, to) => {
    const out = [];
    for (const b of found)
      for (let i = 0; i < b.count; i++)
        if (b.at[i] >= from && b.at[i] < to) {
          out.push({ at: new Date(b.at[i]), sensor, temp: b.temp[i], humidity: b.humidity[i], pressure: b.pressure[i], battery: b.battery[i] });
        }
    return out;
  };
  const of = (sensor, high = Infinity) =>
    request(db.transaction("buckets").objectStore("buckets").getAll(IDBKeyRange.bound([sensor, -Infinity], [sensor, high])));
  return {
    insert: (documents) => {
      const touched = new Map();
      const full = [];
      for (const d of documents) {
        const at = d.at.getTime();
        let b = open.get(d.sensor);
        if (!b || b.count === 1000 || at - b.start >= HOUR || at < b.start) {
          if (b) full.push([d.sensor, b]);
          open.set(d.sensor, (b = fresh(at)));
        }
        b.at[b.count] = at;
        for (const f of FIELDS) b[f][b.count] = d[f];
        b.count++;
        touched.set(d.sensor, b);
      }
      const tx = db.transaction("buckets", "readwrite", { durability: "relaxed" });
      const store = tx.objectStore("buckets");
      for (const [sensor, b] of [...full, ...touched]) store.put(cut(b), [sensor, b.start]);
      return done(tx);
    },
    series: async (sensor) => rows(await of(sensor), sensor, -Infinity, Infinity),
    seriesColumns: async (sensor) => {
      const found = await of(sensor);
      const join = (f) => {
        const out = new Float64Array(found.reduce((n, b) => n + b.count, 0));
        let at = 0;
        for (const b of found) out.set(b[f], at), (at += b.count);
        return out;
      };
      return Object.fromEntries(["at", ...FIELDS].map((f) => [f, join(f)]));
    },
    hour: async (sensor, from) => rows(await of(sensor, from + HOUR), sensor, from, from + HOUR),
    newest: async (sensor) => {
      const { value } = await request(db.transaction("buckets").objectStore("buckets").openCursor(IDBKeyRange.bound([sensor, -Infinity], [sensor, Infinity]), "prev"));
      return rows([value], sensor, -Infinity, Infinity).at(-1);
    },
    count: async () => (await request(db.transaction("buckets").objectStore("buckets").getAll())).reduce((n, b) => n + b.count, 0),
    close: () => db.close(),
  };
}

function toColumns(documents) {
  const columns = { at: new Float64Array(documents.length) };
  for (const f of FIELDS) columns[f] = new Float64Array(documents.length);
  documents.forEach((d, i) => {
    columns.at[i] = d.at.getTime();
    for (const f of FIELDS) columns[f][i] = d[f];
  });
  return columns;
}

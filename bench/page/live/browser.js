// The part of the benchmark of the live tail that runs in a page: rows in IndexedDB.

import { open } from "timepail";
import { compare, folding, growth, ingest } from "./measure.js";
import { Plant, timeseries } from "./plant.js";

/** Journal records have keys that begin with this byte. */
const JOURNAL = "J".charCodeAt(0);

const request = (r) => new Promise((resolve, reject) => ((r.onsuccess = () => resolve(r.result)), (r.onerror = () => reject(r.error))));

async function inStore(name, work) {
  const db = await request(indexedDB.open(`timepail:${name}`));
  try {
    const [store] = db.objectStoreNames;
    return await work(db.transaction(store).objectStore(store));
  } finally {
    db.close();
  }
}

const indexeddb = {
  name: "Chromium",
  open: (name) => open(name, { storage: "indexeddb", durability: "relaxed" }),
  records: (name) => inStore(name, (store) => request(store.count(IDBKeyRange.bound(Uint8Array.of(JOURNAL), Uint8Array.of(JOURNAL + 1), false, true)))),
  async bare() {
    const opening = indexedDB.open("bare", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("puts", { autoIncrement: true });
    const db = await request(opening);
    return {
      put: (bytes) =>
        new Promise((resolve, reject) => {
          const transaction = db.transaction("puts", "readwrite", { durability: "relaxed" });
          Object.assign(transaction, { oncomplete: resolve, onabort: () => reject(transaction.error) });
          transaction.objectStore("puts").add(bytes);
        }),
      async close() {
        db.close();
        await request(indexedDB.deleteDatabase("bare"));
      },
    };
  },
  drop: (name) => request(indexedDB.deleteDatabase(`timepail:${name}`)),
};

/** Stores rows in their commits and keeps them, to measure the size on disk. */
async function fill(_, { options, rows, isFlushed }) {
  const db = await indexeddb.open("fill");
  const points = await db.createCollection("points", { timeseries });
  const plant = new Plant(options);
  while (plant.rows < rows) await points.insertMany(plant.next(), { ordered: false });
  if (isFlushed) await db.flush();
  await db.close();
}

const parts = {
  compare,
  growth,
  ingest,
  folding,
  fill,
  others: async (_, order) => (await import("./others.js")).others(order),
  dashboard: async (_, order) => (await import("./dashboard.js")).dashboard(order),
};

export const live = (order) => parts[order.part](indexeddb, { ...order, log: globalThis.progress });

// The life of a database, from its creation through a crash to its end, in any runtime on any storage.

import { Int32 } from "bson";
import { open, type Collection, type Database, type HostStorage } from "timepail";
import { failure, same } from "./expect.ts";

interface Reading {
  at: Date;
  station: { id: number; site?: string };
  temp?: number;
  n?: Int32 | number;
}

/** A test: its name, and its function of a handle on a store. `make` gives another handle on the same store. */
export interface Step {
  name: string;
  run(make: () => Promise<HostStorage>): Promise<void>;
}

const START = Date.UTC(2024, 0, 1);
const MINUTE = 60_000;

/** Databases that are open at the crash. */
const left: Database[] = [];

async function using<T>(storage: HostStorage, work: (db: Database, weather: Collection<Reading>) => Promise<T>): Promise<T> {
  const db = await open("plant", { storage });
  try {
    return await work(db, db.collection<Reading>("weather"));
  } finally {
    await db.close();
  }
}

const all = async (weather: Collection<Reading>): Promise<string[]> =>
  (await weather.find().sort({ at: 1 }).toArray()).map(({ at, station, temp, n }) => `${(at.getTime() - START) / MINUTE} ${station.id}${station.site ?? ""} ${temp ?? ""}/${n ?? ""}`);

/** Before the crash; the database is not closed. */
export const before: Step[] = [
  {
    name: "creates, inserts and finds",
    async run(make) {
      const db = await open("plant", { storage: await make() });
      left.push(db);
      const weather = await db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station" } });
      const rows = Array.from({ length: 300 }, (_, i) => ({ at: new Date(START + i * MINUTE), station: { id: i % 3 }, temp: i / 2 }));
      same((await weather.insertMany(rows)).insertedCount, 300);
      await weather.insertColumns({ at: Float64Array.from({ length: 200 }, (_, i) => START + (1000 + i) * MINUTE), n: Int32Array.from({ length: 200 }, (_, i) => i) }, { meta: { id: 7 } });
      same(await weather.countDocuments(), 500);
      same((await weather.find({ "station.id": 1, temp: { $lt: 5 } }).sort({ at: -1 }).toArray()).map(({ temp }) => temp), [3.5, 2, 0.5]);
      const { n } = await weather.find({ "station.id": 7, n: { $gte: 197 } }).toColumns();
      same([...(n as unknown as Int32Array)], [197, 198, 199]);
    },
  },
  {
    name: "aggregates, indexes, updates and deletes",
    async run() {
      const weather = left[0]!.collection<Reading>("weather");
      await weather.createIndex({ "station.id": 1, at: -1 });
      const groups = await weather.aggregate([{ $group: { _id: "$station.id", count: { $sum: 1 }, most: { $max: "$temp" } } }, { $sort: { _id: 1 } }]).toArray();
      same(groups, [0, 1, 2].map((id) => ({ _id: id, count: 100, most: (297 + id) / 2 })).concat([{ _id: 7, count: 200, most: null as never }]));
      same((await weather.updateMany({ "station.id": 2 }, { $set: { "station.site": "B" } })).modifiedCount, 100);
      same((await weather.deleteMany({ "station.id": 0 })).deletedCount, 100);
      same(await weather.countDocuments({ "station.site": "B" }), 100);
    },
  },
  {
    name: "answers what it refuses with the server's codes",
    async run() {
      const weather = left[0]!.collection("weather");
      same((await failure(weather.insertOne({ temp: 1 }))).codeName, "BadValue");
      same((await failure(left[0]!.createCollection("weather", { timeseries: { timeField: "other" } }))).codeName, "NamespaceExists");
    },
  },
  {
    name: "acknowledges a last insert before the crash",
    async run() {
      await left[0]!.collection<Reading>("weather").insertOne({ at: new Date(START + 5000 * MINUTE), station: { id: 9 }, temp: 42 });
    },
  },
];

/** After the crash, with new handles. */
export const after: Step[] = [
  {
    name: "finds all that was acknowledged",
    run: async (make) =>
      using(await make(), async (db, weather) => {
        same(await weather.countDocuments(), 401);
        same((await all(weather)).slice(-2), ["1199 7 /199", "5000 9 42/"]);
        same((await all(weather)).slice(0, 3), ["1 1 0.5/", "2 2B 1/", "4 1 2/"]);
        same((await weather.indexes()).map(({ name }) => name), ["station_1_at_1", "station.id_1_at_-1"]);
        same((await weather.find({ "station.id": 1 }).hint("station.id_1_at_-1").toArray()).length, 100);
        same((await db.command({ validate: "weather", full: true }))["valid"], true);
      }),
  },
  {
    name: "lets two contexts write one store",
    async run(make) {
      const [one, other] = [await open("plant", { storage: await make() }), await open("plant", { storage: await make() })];
      const collections = [one, other].map((db) => db.collection<Reading>("weather"));
      const rows = (offset: number): Reading[] => Array.from({ length: 20 }, (_, i) => ({ at: new Date(START + (6000 + 2 * i + offset) * MINUTE), station: { id: 5 }, temp: i }));
      await Promise.all(collections.flatMap((weather, offset) => rows(offset).map((row) => weather.insertOne(row))));
      await Promise.all([one.flush(), other.flush(), ...collections.map((weather) => weather.deleteMany({ "station.id": 9 }))]);
      for (const weather of collections) same([await weather.countDocuments({ "station.id": 5 }), await weather.countDocuments()], [40, 440]);
      same((await one.command({ validate: "weather", full: true }))["valid"], true);
      await Promise.all([one.close(), other.close()]);
    },
  },
  {
    name: "folds the journals of those that are gone, and finds the same",
    run: async (make) =>
      using(await make(), async (db, weather) => {
        const found = await all(weather);
        await db.command({ foldJournals: 1, alive: [] });
        await db.flush();
        same(await all(weather), found);
      }),
  },
  {
    name: "drops what it made",
    async run(make) {
      await using(await make(), async (db, weather) => {
        same(await weather.drop(), true);
        same(await db.listCollections().toArray(), []);
      });
      const entries = await (await make()).scan([[new Uint8Array(), new Uint8Array(40).fill(255)]], { entriesMax: 1000, keysOnly: true });
      same(entries.length, 0);
    },
  },
];

const COMMITS = 25;

/** One of several processes that write concurrently. */
export const writer = (number: number): Step => ({
  name: `writes next to other processes (${number})`,
  async run(make) {
    const db = await open("shared", { storage: await make() });
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "writer" } });
    for (let i = 0; i < COMMITS; i++) await c.insertOne({ at: new Date(START + i * MINUTE), writer: number });
    await db.flush();
    await c.insertOne({ at: new Date(START + COMMITS * MINUTE), writer: number });
    await db.close();
  },
});

/** When all of them have ended. */
export const counted = (writers: number): Step => ({
  name: "loses nothing of what processes wrote at the same time",
  async run(make) {
    const db = await open("shared", { storage: await make() });
    const found = await db.collection("c").aggregate([{ $group: { _id: "$writer", count: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray();
    same(found, Array.from({ length: writers }, (_, i) => ({ _id: i, count: COMMITS + 1 })));
    await db.close();
  },
});

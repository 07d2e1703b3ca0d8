// The types that callers see: checked by tsc, never run.

import { Double, Int32, Long, ObjectId } from "bson";
import { open, BulkWriteError, FindCursor, LiveQuery, ServerError, type Collection, type BigIntColumn, type Columns, type Database, type Document, type Filter, type HostStorage, type InsertManyResult, type NumberColumn, type WriteError } from "timepail";
import { denoKvStorage } from "timepail/deno-kv";
import { openFile } from "timepail/file";
import { useDatabase as useDatabaseInReact, useLive as useLiveInReact } from "timepail/react";
import { useLive as useLiveInSvelte, type Live } from "timepail/svelte";
import { useLive as useLiveInVue } from "timepail/vue";
import { window } from "timepail/pipelines";
import { from as rxFrom, type Observable } from "rxjs";
import type { Readable } from "svelte/store";
import { serve, type Server } from "timepail/server";
import { open as openSlim } from "timepail/slim";
import { sqliteStorage } from "timepail/sqlite";
import { MemoryStorage, storageContract } from "timepail/testing";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if both types are the same. */
declare function same<A, B>(..._: Equal<A, B> extends true ? [] : ["the types differ"]): void;

interface Reading {
  at: Date;
  station: { id: number; site: string };
  temp: number;
  gust?: number;
  rpm: Int32;
  ticks: Long;
  note?: string;
  tags: string[];
}

declare const db: Database;
declare const weather: Collection<Reading>;
declare const loose: Collection;
declare const reading: Reading;

same<ReturnType<typeof open>, Promise<Database>>();
void open("plant", { storage: "indexeddb", durability: "strict", bucketVersion: 1, generateIds: true, wasm: new URL("file:///timepail.wasm") });
void open("plant", { parameters: { timeseriesBucketMaxCount: 500, cacheBytes: 2 ** 26 } });
// @ts-expect-error there is no such parameter
void open("plant", { parameters: { timeseriesBucketMaximum: 500 } });
// @ts-expect-error parameters are numbers
void open("plant", { parameters: { timeseriesBucketMaxCount: "500" } });
void open("plant", { strict: true, retention: "manual" });
// @ts-expect-error there is no such kind of retention
void open("plant", { retention: "never" });
// @ts-expect-error there is no such storage
void open("plant", { storage: "disk" });
void open("plant", { worker: true });
void open("plant", { worker: new URL("file:///worker.js") });
void open("plant", { worker: new Worker("worker.js", { type: "module" }) });
void open("plant", { worker: () => new Worker("worker.js", { type: "module" }) });
// @ts-expect-error a number is not a worker
void open("plant", { worker: 1 });
void openSlim("plant", { wasm: "a.wasm", wasmMore: "b.wasm", worker: "/worker.js" });
// @ts-expect-error this entry knows no address
void openSlim("plant", { wasm: "a.wasm", wasmMore: "b.wasm", worker: true });
declare const own: HostStorage;
void open("plant", { storage: own });
void open("plant", { storage: new MemoryStorage() });
void open("plant", { storage: sqliteStorage({ exec: () => {}, prepare: () => ({ all: () => [], run: () => {} }) }, { table: "t", durability: "strict" }) });
void open("plant", { storage: denoKvStorage({ getMany: async () => [], async *list() {}, atomic: () => {} }, { prefix: ["a", 1] }) });
same<ReturnType<typeof openFile>, Promise<Database>>();
void openFile("plant.db", { durability: "strict", busyTimeoutMS: 5, strict: true });
// @ts-expect-error the storage is the file
void openFile("plant.db", { storage: "memory" });
void openSlim("plant", { wasm: new Uint8Array(), wasmMore: () => fetch("x"), storage: own });
same<ReturnType<(typeof storageContract)[number]["check"]>, Promise<void>>();
// @ts-expect-error slim guesses nothing
void openSlim("plant", { storage: own });
// @ts-expect-error a storage has three methods
void open("plant", { storage: { getMany: () => [], scan: () => [] } });
// @ts-expect-error a commit says whether it took place
void open("plant", { storage: { getMany: () => [], scan: () => [], commit: () => {} } });
// @ts-expect-error a database has a name
void open();

const created = await db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station", granularity: "minutes" }, expireAfterSeconds: 60 });
same<typeof created, Collection<Reading>>();
// @ts-expect-error a time-series collection needs its timeField
void db.createCollection("weather", { timeseries: { metaField: "station" } });
// @ts-expect-error a collection is one of time series
void db.createCollection("weather");
// @ts-expect-error there is no such parameter of time series
void db.createCollection("weather", { timeseries: { timeField: "at", metafield: "station" } });
// @ts-expect-error there is no such granularity
void db.createCollection("weather", { timeseries: { timeField: "at", granularity: "days" } });
same<ReturnType<typeof db.collection>, Collection<Document>>();

same<Awaited<ReturnType<typeof weather.insertMany>>, InsertManyResult>();
void weather.insertMany([reading], { ordered: false });
// @ts-expect-error a field is missing
void weather.insertOne({ at: new Date() });
// @ts-expect-error one document is not an array
void weather.insertMany(reading);
// @ts-expect-error there is no such option
void weather.insertMany([reading], { order: false });
void weather.insertColumns({ at: new Float64Array(1), temp: [1], rpm: new Int32Array(1) }, { meta: { id: 7, site: "A" } });
// @ts-expect-error there is no such field
void weather.insertColumns({ temperature: new Float64Array(1) });
// @ts-expect-error a number is not a column
void weather.insertColumns({ temp: 1 });

// Filters.
weather.find({ temp: 5, at: { $gte: new Date(), $lt: new Date() }, "station.id": 7 });
weather.find({ temp: { $in: [1, new Double(2), null] }, rpm: new Int32(5), note: /x/, tags: "a", gust: { $exists: true } });
weather.find({ $or: [{ temp: 1 }, { temp: { $gt: 2 } }], $expr: { $gt: ["$temp", "$gust"] } });
weather.find({ _id: new ObjectId(), station: { id: 7, site: "B" } });
// @ts-expect-error a number is not compared with a string
weather.find({ temp: "5" });
// @ts-expect-error nor within an operator
weather.find({ temp: { $gt: "5" } });
// @ts-expect-error a date is not compared with a number
weather.find({ at: { $gte: 5 } });
// @ts-expect-error $in takes an array
weather.find({ temp: { $in: 5 } });
// @ts-expect-error $or takes filters
weather.find({ $or: { temp: 1 } });
// @ts-expect-error filters within $or are checked
weather.find({ $or: [{ temp: "1" }] });
loose.find({ anything: "goes", deep: { $gt: 5 } });
const filter: Filter<Reading> = { temp: 1 };
void weather.deleteMany(filter);

// Cursors.
const cursor = weather.find();
same<typeof cursor, FindCursor<Reading>>();
const chained = cursor.filter({ temp: 1 }).sort({ at: -1 }).limit(1).skip(1).batchSize(1).hint("h").collation({ locale: "en" });
same<typeof chained, FindCursor<Reading>>();
same<Awaited<ReturnType<typeof cursor.next>>, Reading | null>();
same<Awaited<ReturnType<typeof cursor.toArray>>, Reading[]>();
const found = await weather.findOne({ temp: 1 });
same<typeof found, Reading | null>();
const other = await weather.findOne<{ temp: number }>({ temp: 1 }, { projection: { temp: 1 } });
same<typeof other, { temp: number } | null>();
const projected = cursor.project<{ temp: number }>({ temp: 1 });
same<typeof projected, FindCursor<{ temp: number }, Reading, Columns<{ temp: number }>>>();
const mapped = cursor.map((document) => document.temp);
same<typeof mapped, FindCursor<number, Reading, Partial<Columns<Reading>>>>();
for await (const document of cursor) same<typeof document, Reading>();
cursor.sort("at", -1).sort(["at", "temp"]).sort([["at", "desc"]]).sort(new Map([["at", 1]]));
// @ts-expect-error a direction is 1 or -1
cursor.sort({ at: 0 });
// @ts-expect-error a limit is a number
cursor.limit("1");
same<Awaited<ReturnType<typeof cursor.explain>>, Document>();
void cursor.explain();
void cursor.explain("executionStats");
void cursor.explain(false);
// @ts-expect-error there is no such verbosity
void cursor.explain("all");
await using disposed = weather.find();
void disposed;

// Aggregations.
const hourly = weather.aggregate<{ _id: Date; temp: number }>([{ $group: { _id: "$at", temp: { $avg: "$temp" } } }], { batchSize: 5 });
same<Awaited<ReturnType<typeof hourly.toArray>>, { _id: Date; temp: number }[]>();
same<Awaited<ReturnType<typeof hourly.next>>, { _id: Date; temp: number } | null>();
void weather.aggregate().addStage<{ n: number }>({ $count: "n" }).map((row) => row.n);
void weather.aggregate<{ at: Date; temp: number }>().downsample({ field: "temp", points: 100, sortBy: { at: 1 }, method: "m4" }).toColumns();
// @ts-expect-error rows are sorted upward
weather.aggregate().downsample({ field: "temp", points: 100, sortBy: { at: -1 } });
// @ts-expect-error a pipeline is an array
weather.aggregate({ $match: {} });

// Columns.
const columns = await cursor.toColumns();
same<typeof columns, Partial<Columns<Reading>>>();
const { at: times, temp: temps, gust, ticks, note } = await cursor.project({ at: 1, temp: 1, gust: 1, ticks: 1, note: 1 }).toColumns();
same<typeof times, Float64Array>();
same<typeof temps, NumberColumn>();
same<typeof gust, NumberColumn | undefined>();
same<typeof ticks, BigIntColumn<Long>>();
same<typeof note, (string | undefined)[] | undefined>();
const { at, temp } = await loose.find().toColumns();
new Float64Array(at as Float64Array).set(temp as Float64Array);

const series = await cursor.project({ at: 1, temp: 1 }).toColumns({ by: "station" });
same<(typeof series)[number]["columns"], Columns<{ at: Date; temp: number }>>();
void weather.aggregate(window({ time: "at", every: "hour", values: { mean: { $avg: "$temp" } } }));
// @ts-expect-error the accumulators have names
window({ time: "at", every: "hour", values: { $avg: "$temp" } });

// Results and errors.
const { deletedCount } = await weather.deleteMany({ at: { $lt: new Date() } });
same<typeof deletedCount, number>();
const { matchedCount, modifiedCount } = await weather.updateMany({ "station.id": 7 }, { $set: { station: { id: 8, site: "B" } } });
same<typeof matchedCount, number>();
same<typeof modifiedCount, number>();
same<Awaited<ReturnType<typeof db.command>>, Document>();
const caught: unknown = null;
if (caught instanceof BulkWriteError) {
  const [first] = caught.writeErrors;
  same<typeof first, WriteError | undefined>();
  const server: ServerError = caught;
  same<typeof server.code, number>();
}

// Live queries, and the libraries that accept them.
const liveRows = weather.find({ temp: { $gt: 20 } }).sort({ at: -1 }).live({ throttleMS: 100 });
same<typeof liveRows, LiveQuery<Reading[]>>();
same<typeof liveRows.current, Reading[] | undefined>();
const liveColumns = weather.find().project({ _id: 0, at: 1, temp: 1 }).live({ columns: true });
liveColumns.subscribe(({ at, temp }) => void [at.length, temp.length]);
const stopLive = liveRows.subscribe((rows) => rows[0]?.temp, (error) => error, () => {});
stopLive();
stopLive.unsubscribe();
const liveGroups = weather.aggregate().group({ _id: "$station.site", mean: { $avg: "$temp" } }).live();
liveGroups.subscribe({ next: (rows) => rows[0]?.mean?.toFixed() });
// What ends a command belongs to the query.
void weather.find({}, { signal: new AbortController().signal, maxTimeMS: 50 }).live();
void weather.aggregate([], { signal: new AbortController().signal, maxTimeMS: 50 }).live();
// @ts-expect-error a live query ends with its subscriptions
weather.find().live({ signal: new AbortController().signal });
// @ts-expect-error there is no such option
weather.find().live({ throttle: 5 });
// @ts-expect-error the result of a live query is read-only
liveRows.current = [];
async function readLive(): Promise<Date | undefined> {
  for await (const rows of liveRows) return rows[0]?.at;
  return undefined;
}
void readLive;
same<ReturnType<typeof rxFrom<typeof liveRows>>, Observable<Reading[]>>();
same<ReturnType<typeof useDatabaseInReact>, Database | undefined>();
const inReact = useLiveInReact(() => db && weather.find({ temp: 7 }), [db]);
same<typeof inReact, Reading[] | undefined>();
const columnsInReact = useLiveInReact(liveColumns);
same<typeof columnsInReact, typeof liveColumns.current>();
const inVue = useLiveInVue(() => weather.find());
same<typeof inVue.value, Reading[] | undefined>();
const inSvelte = useLiveInSvelte(liveRows);
same<typeof inSvelte, Live<Reading[]>>();
const readable: Readable<Reading[] | undefined> = inSvelte;
const store: Pick<Readable<Reading[]>, "subscribe"> = liveRows;
void [readable, store];

// The server.
same<ReturnType<typeof serve>, Promise<Server>>();
void serve({ file: "plant.db", host: "0.0.0.0", port: 0, auth: true, tls: { cert: "…", key: new Uint8Array() }, durability: "strict", log: (line) => void line.length });
void serve({ storage: (name) => (name === "plant" ? new MemoryStorage() : undefined), auth: { ada: "secret" } });
// @ts-expect-error users have passwords
void serve({ file: "plant.db", auth: ["ada"] });
// @ts-expect-error a key belongs to a certificate
void serve({ file: "plant.db", tls: { cert: "…" } });
{
  await using server: Server = await serve({ file: "plant.db" });
  same<typeof server.port, number>();
}

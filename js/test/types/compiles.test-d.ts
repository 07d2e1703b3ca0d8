// Forty lines that a user writes and that must compile, in a project whose only library is ES2022.

import { Double, Int32, Long } from "bson";
import { open, type BulkWriteError, type Collection, type Columns, type Database, type Document, type Filter, type FindCursor, type FindOptions, type NumberColumn } from "timepail";
import wasm from "timepail/timepail.wasm";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if both types are the same. */
declare function same<A, B>(..._: Equal<A, B> extends true ? [] : ["the types differ"]): void;

interface Reading {
  at: Date;
  station: { id: number; site?: string; tags: string[] };
  temp: number;
  gust?: number;
  ticks: Long;
  note?: string;
  parts: { name: string; n: number }[];
}
declare const db: Database;
declare const weather: Collection<Reading>;
declare const loose: Collection;
declare const reading: Reading;
const [now, id] = [new Date(), 7];

/* 1 */ export const opened: Promise<Database> = open("plant", { wasm, wasmMore: wasm });
/* 2 */ void db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station", granularity: undefined }, maxBytes: undefined, dedupe: { by: ["note", "station.id"], keep: "first" } });
/* 3 */ void weather.insertOne({ ...reading, temp: new Int32(5), station: { id: new Double(7), tags: [] } });
/* 4 */ void weather.insertMany([reading, { ...reading, temp: Long.fromNumber(5), ticks: 5n, gust: undefined, station: { id: 7, site: undefined, tags: [] } }]);
/* 5 */ void weather.insertOne({ _id: 7, ...reading });
/* 6 */ void weather.insertColumns({ at: new Float64Array(1), temp: [new Int32(1), undefined], ticks: new BigInt64Array(1), note: ["a"] });
/* 7 */ weather.find({ "station.id": id, "station.tags": "a", "station.tags.0": "a", "parts.n": { $gt: 1 }, "parts.0.name": /x/ });
/* 8 */ weather.find({ temp: { $in: [1, new Int32(2), Long.ONE, 3n, null] }, gust: undefined, ticks: 5, note: { $regex: "x" } });
/* 9 */ weather.find({ $and: [{ "station.site": "A" }, { $or: [{ temp: 1 }] }], $expr: { $gt: ["$temp", 1] }, _id: 1 });
/* 10 */ weather.find().sort({ "station.id": 1, at: -1 }).sort("parts.n").sort(["at", "temp"]).sort([["at", "desc"]]);
/* 11 */ weather.find({}, { limit: undefined, hint: undefined, sort: { at: 1 }, projection: { temp: 1, double: { $multiply: ["$temp", 2] } } });
const options: FindOptions<Reading> = { projection: { temp: 1 }, limit: 1 };
const shown: Record<string, 1> = { temp: 1 };
export const [given, one, wide]: [FindCursor<Reading>, Promise<Reading | null>, FindCursor<Reading>] = [weather.find({}, options), weather.findOne({}, options), weather.find({}, { projection: shown })];
export const [own1, own2]: [FindCursor<{ t: number }, Reading>, Promise<{ t: number } | null>] = [weather.find<{ t: number }>({}, { projection: { t: "$temp" } }), weather.findOne<{ t: number }>({}, { projection: { t: "$temp" } })];
void weather.findOneAndDelete({ "station.id": 7 }, { projection: { _id: 0, "station.id": 1, half: "$temp" }, sort: { at: 1 } });
void loose.findOne({}, { projection: { ever: 1 } });
export const anySchema = <T extends { at: Date }>(c: Collection<T>, from: FindOptions<T>): unknown => [c.find({}, from), c.findOne({}, { ...from, limit: 1 }), c.find({}, { projection: { at: 1, x: 1 } })];
/* 12 */ loose.find({ "any.path": 1 }).sort({ what: 1 }).project({ ever: 1 });
/* 13 */ const chart = weather.find().project({ _id: 0, at: 1, temp: 1 }).sort({ "station.id": 1 });
/* 14 */ same<Awaited<ReturnType<typeof chart.toArray>>, { at: Date; temp: number }[]>();
/* 15 */ const { at, temp } = await chart.toColumns();
/* 16 */ same<typeof temp, NumberColumn>();
/* 17 */ export const sum: number = temp.reduce((total, value) => total + value) + temp.map((value) => value * 2).length;
/* 18 */ export const text: string = temp.reduce<string>((all, value) => all + value, "") + at.reduce((total, ms) => total + ms, 0);
/* 19 */ export const typed: Float64Array | Int32Array = temp.subarray(1);
/* 20 */ for (const value of temp) same<typeof value, number>();
/* 21 */ const all = await weather.find().toColumns();
/* 22 */ same<typeof all.temp, NumberColumn | undefined>();
/* 23 */ export const ticks: Columns<Reading>["ticks"] = new BigInt64Array(1);
/* 24 */ const shape = weather.find().project({ _id: 0, "station.id": 1, half: "$temp", more: { $abs: "$temp" } });
/* 25 */ same<Awaited<ReturnType<typeof shape.next>>, { station: { id: number }; half: number; more: any } | null>();
/* 26 */ const rest = await weather.find().project({ station: 0, parts: 0, ticks: 0 }).toArray();
/* 27 */ same<typeof rest, { at: Date; temp: number; gust?: number; note?: string }[]>();
/* 28 */ const own: FindCursor<{ n: number }, Reading, Columns<{ n: number }>> = weather.find().project<{ n: number }>({ n: "$temp" });
/* 29 */ const hourly = await weather.aggregate([{ $match: { temp: 1 } }, { $group: { _id: "$station.id", mean: { $avg: "$temp" }, n: { $sum: 1 }, last: { $max: "$at" } } }]).toArray();
/* 30 */ same<typeof hourly, { _id: number; mean: number | null; n: number; last: Date | null }[]>();
/* 31 */ const passed: Reading[] = await weather.aggregate([{ $match: { temp: 1 } }, { $sort: { at: 1 } }, { $limit: 5 }]).toArray();
/* 32 */ const counted: { n: number } | null = await weather.aggregate().match({ "station.id": 7 }).group({ _id: null, n: { $sum: 1 } }).next();
/* 33 */ const said: { x: string }[] = await weather.aggregate<{ x: string }>([{ $addFields: { x: "a" } }]).toArray();
/* 34 */ const ids: number[] = await weather.distinct("station.id", { at: { $gte: now } });
/* 35 */ const tags: string[] = await weather.distinct("station.tags");
/* 36 */ void weather.updateMany({ "station.id": 7 }, { $set: { "station.site": "B", "station.tags.$[t]": "x" }, $inc: { "station.id": 1 }, $unset: { note: "" } });
/* 37 */ export const filter: Filter<Reading> = { at: { $gte: now, $lt: now }, "station.site": { $exists: false } };
/* 38 */ export async function addTo<T extends { at: Date }>(c: Collection<T>, rows: T[]): Promise<T[]> { await c.insertMany(rows); await c.deleteMany({ at: { $lt: now } }); return c.find({ at: { $gte: now } }).sort({ at: -1 }).toArray(); }
/* 39 */ export async function make<T extends { at: Date }>(name: string): Promise<Collection<T>> { return db.createCollection<T>(name, { timeseries: { timeField: "at" } }); }
/* 40 */ export const wrong = (error: BulkWriteError): Document[] => [error.errorResponse, ...error.writeErrors, ...passed, ...said, { own, counted, ids, tags }];

// Mistakes of a user. None compiles: a line that did would make its `@ts-expect-error` an error.

import { Int32, Long } from "bson";
import { open, type Collection, type Database, type Filter } from "timepail";

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
declare const reading: Reading;
const now = new Date();

// @ts-expect-error the timeField is a key of the schema
void db.createCollection<Reading>("w", { timeseries: { timeField: "time" } });
// @ts-expect-error and so is the metaField
void db.createCollection<Reading>("w", { timeseries: { timeField: "at", metaField: "sensor" } });
// @ts-expect-error there is no such granularity
void db.createCollection("w", { timeseries: { timeField: "at", granularity: "days" } });
// @ts-expect-error `by` takes fields of the schema
void db.createCollection<Reading>("w", { timeseries: { timeField: "at" }, dedupe: { by: ["channel"] } });
// @ts-expect-error `keep` is "first" or "last"
void db.createCollection("w", { timeseries: { timeField: "at" }, dedupe: { keep: "newest" } });
// @ts-expect-error there is no such option
void open("plant", { durabillity: "strict" });
// @ts-expect-error a field is missing
void weather.insertOne({ at: now, temp: 1 });
// @ts-expect-error there is no such field
void weather.insertOne({ ...reading, temperature: 5 });
// @ts-expect-error a number is not a string
void weather.insertOne({ ...reading, note: 5 });
// @ts-expect-error an integer is not a time
void weather.insertOne({ ...reading, at: new Int32(5) });
// @ts-expect-error a nested integer is not a string
void weather.insertOne({ ...reading, station: { id: 7, site: new Int32(1), tags: [] } });
// @ts-expect-error one document is not an array
void weather.insertMany(reading);
// @ts-expect-error there is no such option
void weather.insertMany([reading], { order: false });
// @ts-expect-error there is no such column
void weather.insertColumns({ at: [now], tmp: [1] });
// @ts-expect-error numbers are not strings
void weather.insertColumns({ at: [now], note: new Float64Array(1) });
// @ts-expect-error strings are not numbers
void weather.insertColumns({ at: [now], temp: ["1"] });
// @ts-expect-error a number is not compared with a string
weather.find({ temp: "5" });
// @ts-expect-error there is no such field
weather.find({ tmp: 5 });
// @ts-expect-error there is no such path
weather.find({ "station.nr": 7 });
// @ts-expect-error the value at the path is a number
weather.find({ "station.id": "7" });
// @ts-expect-error nor within an operator
weather.find({ "station.id": { $in: ["7"] } });
// @ts-expect-error nor in elements of arrays
weather.find({ "parts.n": "x" });
// @ts-expect-error there is no such operator
weather.find({ temp: { $greater: 5 } });
// @ts-expect-error a date is not compared with a number
weather.find({ at: { $gte: 5 } });
// @ts-expect-error filters within $or are checked
weather.find({ $or: [{ "station.idd": 7 }] });
// @ts-expect-error a filter in a variable is checked
export const filter: Filter<Reading> = { gust: "strong" };
// @ts-expect-error there is no such field to sort by
weather.find().sort({ when: 1 });
// @ts-expect-error nor such a path
weather.find().sort("station.nr");
// @ts-expect-error a direction is 1 or -1
weather.find({}, { sort: { at: 0 } });
// @ts-expect-error a projected field is in the schema, or computed
weather.find().project({ tmp: 1 });
// @ts-expect-error also as an option
weather.find({}, { projection: { tmp: 1 } });
// @ts-expect-error below a path, too
void weather.findOne({}, { projection: { "station.nr": 1 } });
// @ts-expect-error fields to leave out are checked
void weather.findOneAndDelete({}, { projection: { _id: 0, tmp: 0 } });
// @ts-expect-error the projection leaves it out
void weather.find().project({ temp: 1 }).map((row) => row.gust);
// @ts-expect-error this column may be missing if the result has no rows
void weather.find().toColumns().then(({ temp }) => temp.length);
// @ts-expect-error an optional field has no column if all measurements lack it
void weather.find().project({ gust: 1 }).toColumns().then(({ gust }) => gust.length);
// @ts-expect-error a group has the fields that its accumulators name
void weather.aggregate([{ $group: { _id: null, mean: { $avg: "$temp" } } }]).map((row) => row.average);
// @ts-expect-error the mean of nothing is null
void weather.aggregate().group({ _id: null, mean: { $avg: "$temp" } }).map((row) => row.mean.toFixed());
// @ts-expect-error a match is checked
weather.aggregate().match({ tmp: 5 });
// @ts-expect-error a pipeline is an array
weather.aggregate({ $match: {} });
// @ts-expect-error there is no such path
void weather.distinct("station.nr");
// @ts-expect-error the values are numbers
export const values: Promise<string[]> = weather.distinct("station.id");
// @ts-expect-error there is no such path to set
void weather.updateMany({}, { $set: { "station.nr": 7 } });
// @ts-expect-error the value at the path is a string
void weather.updateMany({}, { $set: { "station.site": 7 } });
// @ts-expect-error there is no such operator
void weather.updateMany({}, { $sets: { "station.site": "A" } });

// The files of mongodump: buckets or documents of a collection, beside a file with its options and indexes.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { EJSON, type Document } from "bson";
import type { Database } from "../../index.js";
import { bareName } from "../formats/readers.js";
import { bsonTypeOf } from "./values.js";
import type { CollectionPlan } from "./plan.js";

const BUCKETS = "system.buckets.";

/** A collection of a dump. */
export interface Dumped {
  path: string;
  name: string;
  /** Whether the file holds buckets, and not measurements. */
  hasBuckets: boolean;
  options: CollectionPlan | undefined;
  indexes: Document[];
}

/** Identifies the collection of a `.bson` file by its name and the metadata beside it. */
export function dumped(path: string): Dumped {
  const file = bareName(basename(path)).replace(/\.bson$/i, "");
  const hasBuckets = file.startsWith(BUCKETS);
  const base = hasBuckets ? file.slice(BUCKETS.length) : file;
  const { options, indexes = [], collectionName, timepail } = metadata(dirname(path), base) ?? metadata(dirname(path), file) ?? {};
  return { path, name: collectionName?.replace(BUCKETS, "") ?? unescaped(base), hasBuckets, options: options?.timeseries && creation({ ...options, ...timepail }), indexes: indexes.map(plain) };
}

/** The collections of a folder with a dump, and the names of those that are not time-series collections. */
export function dumpedIn(folder: string): { collections: Dumped[]; others: string[] } {
  const names = readdirSync(folder).sort();
  const files = names.filter((name) => /\.bson$/i.test(bareName(name)) && !/^system\.(?!buckets\.)/.test(name));
  const folders = names.filter((name) => statSync(join(folder, name)).isDirectory());
  if (files.length === 0) {
    const hint = folders.length > 0 ? `; its databases are ${folders.map((name) => join(folder, name)).join(", ")}` : "";
    throw new Error(`There is no .bson file in ${folder}${hint}`);
  }
  const all = files.map((name) => dumped(join(folder, name)));
  const collections = all.filter(({ hasBuckets, options }) => hasBuckets || options);
  return { collections, others: all.filter((one) => !collections.includes(one)).map(({ name }) => name) };
}

function metadata(folder: string, name: string): Document | undefined {
  const path = [`${name}.metadata.json`, `${name}.metadata.json.gz`].map((file) => join(folder, file)).find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const bytes = readFileSync(path);
  try {
    return EJSON.parse((path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8")) as Document;
  } catch (cause) {
    throw new Error(`${path} is not a metadata file of mongodump: ${(cause as Error).message}`);
  }
}

/** mongodump writes `%2F` for a slash. */
function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The options with which the collection is created. A server has further options. Those that no server has come from a dump by timepail. */
function creation({ timeseries, expireAfterSeconds, collation, dedupe, maxBytes }: Document): CollectionPlan {
  return {
    timeseries: plain(timeseries) as CollectionPlan["timeseries"],
    ...(expireAfterSeconds !== undefined && { expireAfterSeconds: Number(expireAfterSeconds) }),
    ...(collation && { collation: plain(collation) }),
    ...(dedupe && { dedupe: plain(dedupe) }),
    ...(maxBytes !== undefined && { maxBytes: Number(maxBytes) }),
  };
}

/** Converts numbers of all types to JavaScript numbers. */
function plain(document: Document): Document {
  const isNumber = (value: unknown): boolean => ["Int32", "Long", "Double"].includes(bsonTypeOf(value) ?? "");
  const entries = Object.entries(document).map(([name, value]) => [name, isNumber(value) ? Number(value) : bsonTypeOf(value) === undefined && value?.constructor === Object ? plain(value) : value]);
  return Object.fromEntries(entries);
}

/** Creates the indexes of the dump that a collection does not have. */
export async function createIndexes(db: Database, name: string, indexes: readonly Document[]): Promise<number> {
  const collection = db.collection(name);
  const present = new Set((await collection.indexes()).map((index) => index.name));
  const missing = indexes.filter((index) => !present.has(index["name"]));
  for (const { key, v, ns, ...options } of missing) await collection.createIndex(key, options);
  return missing.length;
}

/** Guesses options of a collection that these buckets fit, if they are not known otherwise. */
export function guessed(buckets: readonly Document[]): CollectionPlan {
  const dates = Object.keys(buckets[0]!["control"].min).filter((field) => buckets.every(({ control }) => control.min[field] instanceof Date && control.max[field] instanceof Date));
  // The id of a bucket begins with its time.
  const timeField = dates.find((field) => buckets.every(({ _id: id, control }) => id.getTimestamp().getTime() === Math.floor(control.min[field] / 1000) * 1000)) ?? dates[0];
  if (timeField === undefined) throw new Error("No field of the buckets is a time");
  const year = 31_536_000;
  const longest = Math.max(...buckets.map(({ control }) => (control.max[timeField] - control.min[timeField]) / 1000));
  const found = ([["seconds", 3600], ["minutes", 86_400], ["hours", 2_592_000]] as const).find(([, span]) => longest < span);
  const span = found ? { granularity: found[0] } : { bucketMaxSpanSeconds: year, bucketRoundingSeconds: year };
  return { timeseries: { timeField, ...(buckets.some(({ meta }) => meta !== undefined) && { metaField: "meta" }), ...span } };
}

export const isBucket = ({ _id: id, control, data }: Document): boolean => bsonTypeOf(id) === "ObjectId" && control?.min !== undefined && data !== undefined;

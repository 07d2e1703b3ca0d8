// `timepail import` of dumps of mongodump.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { EJSON, Int32, Long, serialize, type Document } from "bson";
import { open } from "timepail";
import { file, folder, fresh, rows, sorted, timepail } from "./importing.ts";

const timeseries = { timeField: "at", metaField: "station", granularity: "seconds" } as const;
const measurements = Array.from({ length: 3000 }, (_, n) => ({ at: new Date(1.7e12 + n * 1000), station: { id: n % 3 }, n: new Int32(n), big: Long.fromNumber(n), text: `t${n % 5}` }));

/** The raw buckets of a collection, and the metadata file that mongodump writes beside them. */
async function dump(): Promise<{ buckets: Document[]; metadata: string }> {
  const db = await open("dump", { storage: "memory" });
  const c = await db.createCollection("weather", { timeseries, expireAfterSeconds: 1_000_000_000 });
  await c.insertMany(measurements);
  await c.createIndex({ "station.id": 1 }, { name: "by_id" });
  const buckets = await db.collection("system.buckets.weather", { promoteValues: false, bsonRegExp: true }).find().toArray();
  const [{ options }] = (await db.listCollections({ name: "weather" }).toArray()) as unknown as [{ options: Document }];
  const indexes = await c.indexes();
  await db.close();
  const longs = { ...options, expireAfterSeconds: Long.fromNumber(options["expireAfterSeconds"]) };
  return { buckets, metadata: EJSON.stringify({ options: longs, indexes, uuid: "00", collectionName: "weather", type: "timeseries" }, { relaxed: false }) };
}

const { buckets, metadata } = await dump();
const bson = (documents: readonly Document[]): Buffer => Buffer.concat(documents.map((document) => serialize(document, { ignoreUndefined: false })));
const wanted = sorted(measurements.map((row) => EJSON.parse(EJSON.stringify({ ...row, station: { id: row.station.id } }), { relaxed: false }) as Document)).map(({ n }) => Number(n));
const numbers = (db: string, name: string): number[] => rows(db, name).map(({ n }) => Number(n)).sort((a, b) => a - b);

/** Creates a folder with files. */
function dumpFolder(name: string, files: Record<string, string | Uint8Array>): string {
  mkdirSync(join(folder, name), { recursive: true });
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, name, path), content);
  return name;
}

test("a folder with buckets restores the collection, its options and its indexes", () => {
  const db = fresh();
  const plant = dumpFolder("dump/plant", { "system.buckets.weather.bson": bson(buckets), "weather.metadata.json": metadata, "users.bson": bson([{ a: 1 }]), "users.metadata.json": '{"options":{},"indexes":[]}', "system.views.bson": "" });
  const { code, out, err } = timepail(["import", db, plant]);
  assert.equal(code, 0, err);
  assert.match(out, /New collection weather, with the options of the dump/);
  assert.match(err, /^Skipped, because they are not time-series collections: users\n/);
  assert.match(err, new RegExp(`\\n${buckets.length} buckets stored in weather in `));
  assert.deepEqual(numbers(db, "weather"), [...wanted].sort((a, b) => a - b));
  const [first] = rows(db, "weather").filter(({ n }) => Number(n) === 7);
  assert.deepEqual([first!["n"], first!["big"], first!["at"]], [new Int32(7), Long.fromNumber(7), measurements[7]!.at]);
  const plan = timepail(["query", db, "weather", '[{"$indexStats":{}},{"$project":{"name":1}}]']);
  assert.match(plan.out, /by_id/);
  const again = timepail(["import", db, plant]);
  assert.match(again.err, new RegExp(`0 buckets stored in weather in .*, ${buckets.length} already stored`));
  const hint = timepail(["import", fresh(), "dump"]);
  assert.deepEqual([hint.code, hint.err], [1, "timepail: There is no .bson file in dump; its databases are dump/plant\n"]);
});

test("a dump of ours restores measurements, indexes, and the options that no server has", () => {
  const [from, to] = [fresh(), fresh()];
  writeFileSync(join(folder, "twice.csv"), `at,station,channel,v\n${Array.from({ length: 500 }, (_, n) => `2025-06-01T00:${String(Math.floor(n / 60)).padStart(2, "0")}:${String(n % 60).padStart(2, "0")}Z,s${n % 3},${n % 2},${n}\n`).join("")}`);
  const imported = timepail(["import", from, "weather", "twice.csv", "--time-field", "at", "--meta-field", "station", "--dedupe-by", "channel", "--dedupe-keep", "first"]);
  assert.equal(imported.code, 0, imported.err);
  const dumped = timepail(["export", from, "--dump", "own-dump"]);
  assert.equal(dumped.code, 0, dumped.err);
  const restored = timepail(["import", to, join("own-dump", from.replace(/\.db$/, ""))]);
  assert.equal(restored.code, 0, restored.err);
  assert.deepEqual(sorted(rows(to, "weather")), sorted(rows(from, "weather")));
  assert.equal(rows(to, "weather").length, 500);
  const again = timepail(["import", to, "weather", "twice.csv"]);
  assert.equal(again.code, 0, again.err);
  assert.equal(rows(to, "weather").length, 500);
});

test("a compressed dump of one collection of several is read by its name", () => {
  const db = fresh();
  const plant = dumpFolder("zipped", { "system.buckets.weather.bson.gz": gzipSync(bson(buckets)), "weather.metadata.json.gz": gzipSync(metadata), "system.buckets.other.bson": bson(buckets), "other.metadata.json": metadata.replace('"weather"', '"other"') });
  const { code, err } = timepail(["import", db, "weather", plant]);
  assert.equal(code, 0, err);
  assert.equal(numbers(db, "weather").length, 3000);
  assert.doesNotMatch(timepail(["stats", db]).out, /other/);
});

test("buckets without metadata get options into which they fit", () => {
  const db = fresh();
  const plant = dumpFolder("bare", { "system.buckets.weather.bson": bson(buckets) });
  const { code, out } = timepail(["import", db, join(plant, "system.buckets.weather.bson")]);
  assert.equal(code, 0);
  assert.match(out, /New collection weather, with guessed options: \{"timeField":"at","metaField":"meta"/);
  assert.equal(numbers(db, "weather").length, 3000);
});

test("a bucket that breaks a rule is refused by its number, and with --strict ends the import", () => {
  const broken = buckets.map((bucket, at) => (at === 1 ? { ...bucket, control: { ...bucket["control"], version: new Int32(9) } } : bucket));
  const plant = dumpFolder("broken", { "system.buckets.weather.bson": bson(broken), "weather.metadata.json": metadata });
  const lenient = timepail(["import", fresh(), plant]);
  assert.equal(lenient.code, 0);
  assert.match(lenient.err, new RegExp(`^Bucket 2: .*\\n${buckets.length - 1} buckets stored in weather in .*, 1 bad bucket skipped\\n$`));
  const strict = timepail(["import", fresh(), plant, "--strict"]);
  assert.equal(strict.code, 1);
  assert.match(strict.err, /^Bucket 2: .*\nStopped: 1 bucket stored in weather/);
});

test("documents beside metadata, or alone, are measurements", () => {
  const db = fresh();
  const plant = dumpFolder("documents", { "weather.bson": bson(measurements), "weather.metadata.json": metadata });
  const { code, out } = timepail(["import", db, join(plant, "weather.bson")]);
  assert.equal(code, 0);
  assert.match(out, /New collection weather, with the options of the dump/);
  assert.deepEqual(rows(db, "weather").filter(({ n }) => Number(n) === 9).map(({ n, big, text }) => [n, big, text]), [[new Int32(9), Long.fromNumber(9), "t4"]]);
  assert.match(timepail(["import", db, "alone", "-", "--meta-field", "station"], bson(measurements)).out, /^standard input: BSON\n\nfield +type +sample\nat +date/);
  assert.equal(rows(db, "alone").length, 3000);
});

test("a file that is damaged or of another kind is refused with the byte, and what stands before is stored", () => {
  const db = fresh();
  const many = bson(Array.from({ length: 5 }, () => measurements).flat());
  const { code, err } = timepail(["import", db, "cut", file("cut.bson", many.subarray(0, many.length - 5))]);
  assert.equal(code, 1);
  assert.match(err, /14,999 rows stored in cut in .*\ntimepail: cut\.bson ends in the middle of a document, at byte \d+\n$/);
  assert.equal(rows(db, "cut").length, 14_999);
  assert.match(timepail(["import", db, "text", file("text.bson", "hello world, this is text")]).err, /text\.bson is not valid BSON at byte 0/);
  dumpFolder("strange", { "system.buckets.c.bson": bson([{ a: 1 }]) });
  assert.match(timepail(["import", db, "strange"]).err, /does not hold buckets of a time-series collection/);
});

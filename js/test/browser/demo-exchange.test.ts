// The demo page: data out into files, and in again.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deserialize, EJSON, Int32, type Document } from "bson";
import { assertLabelledAndFitting, click, complaints, count, idle, page, reachedByKeyboard, screenshot, shows } from "./demo-page.js";

type File = { name: string; mimeType: string; buffer: Buffer };

/** Presses an export button; resolves to the downloaded file. */
async function download(kind: string): Promise<File> {
  const [got] = await Promise.all([page.waitForEvent("download"), page.click(`[data-export=${kind}]`)]);
  await idle();
  return { name: got.suggestedFilename(), mimeType: "application/octet-stream", buffer: readFileSync((await got.path())!) };
}

async function importFiles(...files: File[]): Promise<void> {
  await page.setInputFiles("#bson", files);
  await idle();
}

async function ask(text: string): Promise<string> {
  await page.fill("#console-text", text);
  await page.check("[name=console-form][value=documents]");
  await click("#console [type=submit]");
  return shows("#console-output");
}

function documents({ buffer }: File): Document[] {
  const all: Document[] = [];
  for (let at = 0; at < buffer.length; at += buffer.readInt32LE(at)) all.push(deserialize(buffer.subarray(at, at + buffer.readInt32LE(at)), { promoteValues: false }));
  return all;
}

let buckets: File;
let options: File;

test("buckets are exported as they are stored, with their options, under the names of mongodump", async () => {
  await click("[data-load=weather]");
  buckets = await download("buckets");
  assert.equal(buckets.name, "system.buckets.weather.bson");
  assert.match(await shows("#toast p"), /^13 buckets in system\.buckets\.weather\.bson, \d+ kB\.$/);
  const all = documents(buckets);
  assert.equal(all.length, await count("#buckets"));
  assert.equal(all[0]!["control"].version._bsontype, "Int32");
  assert.equal(all[0]!["control"].min.temperature._bsontype, "Double");
  assert.equal(all[0]!["data"].at.sub_type, 7);

  await ask('db.collection("weather").createIndex({ wind: 1 })');
  await page.fill("#keep-age", "50");
  await page.selectOption("#keep-unit", "years");
  await click("#keep [type=submit]");
  options = await download("options");
  assert.equal(options.name, "weather.metadata.json");
  const metadata = EJSON.parse(options.buffer.toString(), { relaxed: false }) as Document;
  assert.deepEqual(metadata["options"].timeseries, { timeField: "at", metaField: "station", granularity: "hours", bucketMaxSpanSeconds: new Int32(2_592_000) });
  assert.equal(metadata["options"].expireAfterSeconds._bsontype, "Long");
  assert.deepEqual([metadata["type"], metadata["collectionName"]], ["timeseries", "weather"]);
  await screenshot("exchange", ".exchange");
});

test("an import with the options restores the same collection, byte for byte", async () => {
  const before = await ask('db.collection("weather").find({}).sort({ at: -1 }).limit(3)');
  await ask('db.dropCollection("weather")');
  await importFiles(buckets, options);
  assert.match(await shows("#toast p"), /^13 buckets imported into “weather”, \d+ kB\.$/);
  assert.equal(await count("#measurements"), 8759);
  assert.equal(await ask('db.collection("weather").find({}).sort({ at: -1 }).limit(3)'), before);
  assert.match(await ask('db.command({ validate: "weather", full: true })'), /valid: true/);
  assert.match(await ask('db.listCollections({ name: "weather" })'), /expireAfterSeconds: 1576800000/);
  assert.match(await ask('db.collection("weather").listIndexes()'), /name: "wind_1"/);
  assert.ok(buckets.buffer.equals((await download("buckets")).buffer));
});

test("existing buckets are counted and skipped", async () => {
  await importFiles(buckets);
  assert.match(await shows("#toast p"), /^0 buckets imported .*; 13 were there already\.$/);
  assert.equal(await count("#measurements"), 8759);
});

test("without options, they are guessed such that every bucket fits", async () => {
  await importFiles({ ...buckets, name: "copy of weather.bson" });
  assert.equal(await page.isChecked("[name=collection][value=copy_of_weather]"), true);
  assert.equal(await count("#measurements"), 8759);
  assert.match(await shows("#about"), /Time in “at”, series by “meta”/);
  assert.deepEqual(await page.locator("#series label").allTextContents(), ["Seattle"]);
});

test("a file that is truncated, not BSON or of another kind is refused with the offset", async () => {
  const cases: [Partial<File>, RegExp][] = [
    [{ buffer: Buffer.from("hello world, this is text") }, /x\.bson is not valid BSON at byte 0/],
    [{ buffer: buckets.buffer.subarray(0, buckets.buffer.length - 5) }, /ends in the middle of a document, at byte \d+/],
    [{ buffer: Buffer.from([12, 0, 0, 0, 16, 97, 0, 1, 0, 0, 0, 0]) }, /not buckets of a time-series collection/],
    [{ name: "x.json" }, /Choose a \.bson file/],
  ];
  for (const [file, reason] of cases) {
    await importFiles({ ...buckets, name: "x.bson", ...file });
    assert.match(await shows("#toast p"), reason);
    await page.click("#toast button");
  }
  const broken = Buffer.from(buckets.buffer);
  broken.writeUInt8(9, broken.indexOf("version") + 8); // A version that there is not.
  await importFiles({ ...buckets, name: "y.bson", buffer: broken });
  assert.match(await shows("#toast p"), /^12 buckets imported into “y”.*1 refused/);
  assert.match(await shows("#import-problems"), /^Bucket [0-9a-f]{24}: /);
  complaints.length = 0; // The errors are in the console as well.
});

test("rows are exported as CSV and as JSON lines, and both import to the same rows", async () => {
  await click("[name=collection][value=weather]");
  const csv = await download("csv");
  assert.equal(csv.name, "weather.csv");
  const lines = csv.buffer.toString().split("\n");
  assert.equal(lines[0], "at,station,temperature,wind,pressure");
  assert.match(lines[1]!, /^2010-01-01T01:00:00\.000Z,Seattle,[\d.]+,[\d.]+,[\d.]+$/);
  assert.equal(lines.length, 8759 + 2);
  const ndjson = await download("ndjson");
  assert.match(ndjson.buffer.toString(), /^\{"at":\{"\$date":"2010-01-01T01:00:00Z"\},"station":"Seattle",/);
  const sum = '.aggregate([{ $group: { _id: "$station", n: { $sum: 1 }, t: { $sum: "$temperature" }, first: { $min: "$at" } } }])';
  const before = await ask(`db.collection("weather")${sum}`);
  for (const [file, name] of [[csv, "weather_2"], [ndjson, "weather_3"]] as const) {
    await page.setInputFiles("#file", file);
    await idle();
    // The same columns: both are imports of one collection, unless it has another name.
    assert.equal(await page.inputValue("#own-name"), "weather_2");
    await page.fill("#own-name", name);
    await click("#own-form [type=submit]");
    assert.equal(await ask(`db.collection("${name}")${sum}`), before);
  }
});

test("cells that need quotes get them", async () => {
  const lines = await page.evaluate(async () => {
    const path = "/rows-file.js";
    const { csvLine, jsonLine } = (await import(path)) as { csvLine: (row: object, fields: string[]) => string; jsonLine: (row: object) => string };
    const old = new Date(-1);
    const row = { old, a: 'say "hi", twice\n', b: { c: [1, new Date(0)] }, d: null, e: " x", f: Number.NaN };
    return [csvLine(row, ["a", "b", "d", "missing", "e", "f"]), jsonLine(row)];
  });
  assert.deepEqual(lines, [
    '"say ""hi"", twice\n","{""c"":[1,{""$date"":""1970-01-01T00:00:00Z""}]}",,," x",NaN\n',
    '{"old":{"$date":{"$numberLong":"-1"}},"a":"say \\"hi\\", twice\\n","b":{"c":[1,{"$date":"1970-01-01T00:00:00Z"}]},"d":null,"e":" x","f":{"$numberDouble":"NaN"}}\n',
  ]);
});

test("a long export can be cancelled with Escape, and writes nothing", async () => {
  await click('[data-add="1000000"]');
  await page.click("[data-export=ndjson]");
  await page.waitForFunction(() => / rows$/.test(document.getElementById("progress-text")!.textContent!));
  await page.keyboard.press("Escape");
  await idle();
  assert.equal(await shows("#toast p"), "Cancelled: nothing was written.");
});

test("the keyboard reaches it, fields have labels, and nothing overflows", async () => {
  const reached = await reachedByKeyboard();
  assert.ok(reached.has("bson"));
  assert.equal(await page.locator("[data-export]:visible").count(), 4);
  await assertLabelledAndFitting();
  assert.deepEqual(complaints, []);
});

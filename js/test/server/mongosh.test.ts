// mongosh against `timepail serve`: typed commands and their output.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { file, node, places, served } from "./harness.ts";

/** Runs lines as if they were typed, and returns the output. */
function typed(uri: string, lines: string[]): Promise<string> {
  const home = file("home");
  mkdirSync(`${home}/.mongodb/mongosh`, { recursive: true });
  writeFileSync(`${home}/.mongodb/mongosh/config`, "enableTelemetry: false\n");
  const child = spawn(node, [places.mongosh, "--norc", uri], { env: { ...process.env, HOME: home }, stdio: ["pipe", "pipe", "pipe"] });
  let shown = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (shown += text));
  child.stdin.end(`${lines.join("\n")}\nexit\n`);
  return new Promise((resolve) => child.on("close", () => resolve(shown)));
}

test("the lines of the guide work", async () => {
  const [, lines] = /In mongosh:\n\n```js\n([^]*?)```/.exec(readFileSync(join(process.cwd(), "../docs/server.md"), "utf8"))!;
  const { uri, end } = await served("guide.db");
  const shown = await typed(`${uri}guide`, lines!.trim().split("\n"));
  assert.match(shown, /station: 'roof',\s+temp: 21\.5/);
  assert.doesNotMatch(shown, /Uncaught/);
  await end();
});

test("mongosh starts, shows what there is, and asks", async () => {
  const { uri, end } = await served("plant.db");
  const shown = await typed(`${uri}plant`, [
    'db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } })',
    "db.weather.insertMany(Array.from({ length: 100 }, (_, i) => ({ at: new Date(1e12 + i * 1000), station: i % 4, temp: i })))",
    "show dbs",
    "show collections",
    "db.weather.find({ station: 3 }, { _id: 0, temp: 1 }).sort({ at: -1 }).limit(1)",
    'db.weather.aggregate([{ $group: { _id: null, sum: { $sum: "$temp" } } }])',
    "'it: ' + db.weather.find().toArray().length",
    "'found: ' + db.absent.find().toArray().length",
    "'count: ' + db.weather.countDocuments()",
    "'index: ' + db.weather.createIndex({ station: 1, temp: 1 })",
    "'indexes: ' + db.weather.getIndexes().length",
    "'buckets: ' + db.weather.stats().timeseries.bucketCount",
    "'plan: ' + JSON.stringify(db.weather.find({ station: 3 }).explain()).includes('queryPlanner')",
    "'valid: ' + db.weather.validate().valid",
    "'version: ' + db.version() + ' ' + db.serverBuildInfo().timepail.version",
    "'host: ' + db.hostInfo().ok + db.serverStatus().ok + db.stats().ok",
    "'uptime: ' + (db.adminCommand({ currentOp: 1 }).inprog.length > 0)",
    "'running: ' + (db.currentOp().inprog.length > 0) + (db.currentOp(true).inprog.length > 1) + db.currentOp({ ns: 'nowhere.c' }).inprog.length",
    "'killed: ' + db.killOp(123456).ok",
    "'plans: ' + [db.weather.explain().find({ station: 1 }).finish().ok, db.weather.explain('executionStats').aggregate([{ $match: { station: 1 } }]).ok, db.weather.explain().count({ station: 1 }).ok, db.weather.explain().distinct('station').ok, db.weather.explain().remove({ station: 1 }).ok, db.weather.explain().findAndModify({ query: { station: 1 }, remove: true }).ok]",
    "'options: ' + db.runCommand({ collMod: 'weather', timeseries: { granularity: 'minutes' } }).ok",
    "'latency: ' + db.weather.stats({ scale: 1024 }).ok + db.weather.dataSize() + db.weather.totalSize()",
    "show logs",
    "show users",
    "use other",
    "show tables",
    "db.plain.insertOne({ a: 1 })",
    "db.getSiblingDB('plant').weather.drop()",
  ]);
  for (const expected of [
    "Using MongoDB:",
    "acknowledged: true",
    /plant {2,}[\d.]+ (Ki)?B/,
    /weather {2,}\[time-series\]/,
    "{ temp: 99 }",
    "sum: 4950",
    "it: 100",
    "found: 0",
    "count: 100",
    "index: station_1_temp_1",
    "indexes: 2",
    "buckets: 4",
    "plan: true",
    "valid: true",
    /version: 7\.0\.0 \d+\.\d+\.\d+/,
    "host: 111",
    "uptime: true",
    "running: truetrue0",
    "killed: 1",
    "plans: 1,1,1,1,1,1",
    "options: 1",
    /latency: 1\d+/,
    "startupWarnings",
    "switched to db other",
    "MongoServerError[NamespaceNotFound]: Collection 'other.plain' does not exist",
  ]) assert.ok(typeof expected === "string" ? shown.includes(expected) : expected.test(shown), `${String(expected)} is missing in\n${shown}`);
  // Only the collection created above.
  assert.equal(shown.match(/Uncaught/g)?.length, 1, shown);
  assert.equal(await end("SIGINT"), 0);
});

// What Compass is built on, against `timepail serve`: connecting, the instance, databases and collections with their sizes, and the tabs of a collection.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { MongoClient, as, file, places, served, timepail } from "./harness.ts";

const { connect }: any = createRequire(join(places.packages, "index.js"))("mongodb-data-service");
const NS = "plant.weather";

/** Warnings and errors that Compass would write to its log. */
const complaints: unknown[] = [];
// Compass reports its packages for other operating systems and for encryption as missing, because they are not compiled here.
const complain = (...all: unknown[]): unknown => all.includes("Missing optional dependency") || complaints.push(all);
const logger = { debug() {}, info() {}, warn: complain, error: complain, fatal: complain, mongoLogId: String };
const connected = (connectionString: string): Promise<any> => connect({ connectionOptions: { connectionString }, logger, productName: "Compass" });

test("Compass connects, and shows what there is", async (t) => {
  const server = await served("plant.db");
  const service = await connected(server.uri);
  t.after(() => service.disconnect());

  await t.test("the first screen", async () => {
    const { build, host, genuineMongoDB, dataLake, featureCompatibilityVersion, isAtlas, isLocalAtlas, auth } = await service.instance();
    assert.deepEqual([build.version, build.isEnterprise, genuineMongoDB.isGenuine, dataLake.isDataLake, featureCompatibilityVersion, isAtlas, isLocalAtlas], ["7.0.0", false, true, false, "7.0", false, false]);
    assert.ok(host.arch && host.os && host.cpu_cores > 0 && host.memory_bits > 0, JSON.stringify(host));
    assert.deepEqual(auth, { user: null, roles: [], privileges: [] });
    assert.deepEqual([service.isWritable(), service.isMongos(), service.getCurrentTopologyType()], [true, false, "Single"]);
    assert.deepEqual(await service.listDatabases(), []);
  });

  await t.test("a collection is created and filled", async () => {
    await service.createCollection(NS, { timeseries: { timeField: "at", metaField: "station", granularity: "minutes" }, expireAfterSeconds: 1e9 });
    assert.equal((await service.insertOne(NS, { at: new Date(), station: "roof", temp: 1 })).acknowledged, true);
    const rows = Array.from({ length: 2000 }, (_, i) => ({ at: new Date(Date.now() - i * 60_000), station: i % 2 ? "roof" : "cellar", temp: i / 8 }));
    assert.equal((await service.insertMany(NS, rows)).insertedCount, 2000);
    await service.createIndex(NS, { station: 1, temp: 1 }, { name: "by temp" });
    // Flush, because measurements that are in no bucket yet are in no index.
    const client = new MongoClient(server.uri);
    assert.equal((await client.db("plant").command({ flush: 1 })).ok, 1);
    await client.close();
  });

  await t.test("databases and collections, with their sizes", async () => {
    assert.deepEqual((await service.listDatabases()).map(({ name }: any) => name), ["plant"]);
    assert.deepEqual((await service.listDatabases({ nameOnly: true })).length, 1);
    const { collection_count: count, document_count: documents, storage_size: size, index_count: indexes } = await service.databaseStats("plant");
    assert.ok(count >= 1 && documents > 0 && size > 0 && indexes >= 2, JSON.stringify({ count, documents, size, indexes }));
    const listed = await service.listCollections("plant");
    const weather = listed.find(({ name }: any) => name === "weather");
    assert.deepEqual([weather.type, weather.readonly, weather.database], ["timeseries", false, "plant"]);
    assert.ok(listed.every(({ name }: any) => /^(weather|system\.buckets\.weather|system\.views)$/.test(name)), JSON.stringify(listed));
    assert.deepEqual(await service.listCollections("nowhere"), []);
    assert.equal((await service.collectionInfo("plant", "weather")).type, "timeseries");
    const stats = await service.collectionStats("plant", "weather", "timeseries");
    assert.ok(stats.storage_size > 0 && stats.index_count === 2 && stats.index_size > 0 && stats.bucket_count > 1 && stats.avg_bucket_size > 0, JSON.stringify(stats));
    const buckets = await service.collectionStats("plant", "system.buckets.weather", "collection");
    assert.ok(buckets.storage_size > 0 && buckets.index_size > 0, JSON.stringify(buckets));
  });

  await t.test("documents, schema and counts", async () => {
    const signal = { abortSignal: new AbortController().signal };
    assert.equal(await service.estimatedCount(NS, {}, signal), 2001);
    assert.equal(await service.count(NS, { station: "cellar" }, { hint: undefined, maxTimeMS: 500, skip: 0 }, signal), 1000);
    const page = await service.find(NS, {}, { sort: undefined, projection: undefined, skip: 0, limit: 20, maxTimeMS: 60_000, promoteValues: false, bsonRegExp: true }, signal);
    assert.equal(page.length, 20);
    assert.equal((await service.find(NS, { temp: { $lt: 10 } }, { sort: { at: -1 }, projection: { _id: 0 }, collation: { locale: "en" }, limit: 20 }, signal)).length, 20);
    assert.equal((await service.sample(NS, { query: { station: "roof" }, size: 100, fields: { temp: 1 } }, { maxTimeMS: 10_000 }, signal)).length, 100);
    let schema = 0;
    for await (const _ of service.sampleCursor(NS, { size: 1000 }, { promoteValues: false })) schema++;
    assert.equal(schema, 1000);
  });

  await t.test("the tab of aggregations", async () => {
    const preview = [{ $match: { station: "roof" } }, { $limit: 100_000 }, { $group: { _id: "$station", mean: { $avg: "$temp" } } }, { $limit: 20 }];
    const found = await service.aggregate(NS, preview, { maxTimeMS: 60_000, allowDiskUse: true, promoteValues: false }, { abortSignal: new AbortController().signal });
    assert.equal(found.length, 1);
    assert.equal((await service.aggregate(NS, [{ $facet: { n: [{ $count: "n" }] } }])).length, 1);
  });

  await t.test("plans and indexes", async () => {
    for (const explainVerbosity of ["queryPlanner", "executionStats", "allPlansExecution"]) {
      assert.equal((await service.explainFind(NS, { station: "roof" }, { sort: { at: -1 }, limit: 5 }, { explainVerbosity, maxTimeMS: 5000 })).ok, 1);
      assert.equal((await service.explainAggregate(NS, [{ $match: { station: "roof" } }], {}, { explainVerbosity })).ok, 1);
    }
    const indexes = await service.indexes(NS, { full: true });
    assert.deepEqual(indexes.map(({ name }: any) => name).sort(), ["by temp", "station_1_at_1"]);
    for (const { size, usageCount, usageSince, type } of indexes) assert.ok(size > 0 && usageCount !== undefined && usageSince instanceof Date && type === "regular", JSON.stringify(indexes));
    await service.dropIndex(NS, "by temp");
  });

  await t.test("the tab of performance", async () => {
    const { opcounters, network, mem, connections, globalLock } = await service.serverStatus();
    assert.ok(opcounters.insert >= 2 && opcounters.query > 0 && network.bytesIn > 0 && network.bytesOut > 0 && mem.resident > 0 && connections.current > 0 && globalLock.totalTime > 0);
    assert.ok((await service.currentOp()).inprog.length > 0);
    assert.deepEqual((await service.top()).totals, {});
  });

  // The calls below are stopped or refused, which Compass writes to its log.
  assert.deepEqual(complaints, []);

  await t.test("an aggregation that is stopped", async () => {
    const stop = new AbortController();
    const all = [{ $lookup: { from: "weather", let: { t: "$temp" }, pipeline: [{ $match: { $expr: { $gt: [{ $add: ["$temp", "$$t"] }, -1] } } }, { $count: "n" }], as: "l" } }, { $group: { _id: null, n: { $sum: 1 } } }];
    const ended = assert.rejects(service.aggregate(NS, [...all, ...all], {}, { abortSignal: stop.signal }), (error) => service.isCancelError(error));
    const runs = async (): Promise<boolean> => (await service.currentOp()).inprog.some(({ command }: any) => command.aggregate === "weather");
    while (!(await runs()));
    stop.abort();
    await ended;
    while (await runs());
  });

  await t.test("what time series refuse says so with a code", async () => {
    const refused = (work: Promise<unknown>, code: number): Promise<void> => assert.rejects(work, (error: any) => (assert.equal(error.code, code, String(error)), true));
    await refused(service.createCollection("plant.plain", {}), 72);
    await refused(service.createView("view", NS, []), 72);
    await refused(service.renameCollection(NS, "other"), 166);
    await refused(service.updateOne(NS, { temp: 1 }, { $set: { temp: 2 } }), 72);
    await refused(service.insertOne("plant.plain", { a: 1 }), 26);
    assert.equal((await service.updateCollection(NS, { expireAfterSeconds: 5e8 })).ok, 1);
    assert.equal((await service.deleteMany(NS, { station: "cellar" })).deletedCount, 1000);
    assert.equal(await service.dropCollection(NS), true);
    assert.equal(await service.isListSearchIndexesSupported(NS), false);
    await service.dropDatabase("plant");
  });
});

test("Compass connects as a user", async () => {
  assert.equal(timepail(["user", file("users.db"), "ada"], "secret\n").code, 0);
  const server = await served("users.db", "--auth");
  const service = await connected(as(server.uri, "ada", "secret"));
  const { auth } = await service.instance();
  assert.deepEqual([auth.user, auth.roles], [{ user: "ada", db: "admin" }, [{ role: "root", db: "admin" }]]);
  assert.deepEqual(await service.listDatabases(), []);
  await service.createCollection(NS, { timeseries: { timeField: "at" } });
  assert.deepEqual((await service.listDatabases()).map(({ name }: any) => name), ["plant"]);
  assert.ok((await service.listCollections("plant")).length >= 1);
  await service.disconnect();
  await assert.rejects(connected(as(server.uri, "ada", "wrong")), /Authentication failed/);
  assert.equal(await server.end(), 0);
});

// Databases and collections over a fake engine: the commands that they send, and how they handle replies.

import { runInNewContext } from "node:vm";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Int32, Long, ObjectId, type Document } from "bson";
import { Database, openWith } from "../src/database.ts";
import { BadValueError, BulkWriteError, ClosedError, ServerError, TimepailError } from "../src/errors.ts";
import type { HostStorage } from "../src/storage.ts";
import type { OpenOptions } from "../src/types.ts";
import { FakeEngine } from "./fake-engine.ts";

async function database(options: OpenOptions = { storage: "memory" }): Promise<{ engine: FakeEngine; db: Database }> {
  const engine = new FakeEngine();
  const db = await openWith(
    async (_, given) => {
      engine.options = given;
      return engine;
    },
    "plant",
    options,
  );
  return { engine, db };
}

test("open hands storage, durability and a fresh context to the engine", async () => {
  const { engine, db } = await database({ durability: "strict", bucketVersion: 1, parameters: { timeseriesBucketMaxCount: 5 }, strict: true, retention: "manual" });
  assert.match(engine.options!.context, /^[0-9a-f]{16}$/);
  assert.deepEqual({ ...engine.options, context: "" }, { storage: "memory", durability: "strict", context: "", bucketVersion: 1, parameters: { timeseriesBucketMaxCount: 5 }, strict: true, retention: "manual" });
  assert.deepEqual([db.name, db.databaseName], ["plant", "plant"]);
  const { engine: other } = await database();
  assert.notEqual(other.options!.context, engine.options!.context);
});

test("open refuses invalid names and storages", async () => {
  const never = async (): Promise<never> => assert.fail();
  await assert.rejects(openWith(never, ""), TypeError);
  await assert.rejects(openWith(never, 5 as unknown as string), TypeError);
  await assert.rejects(openWith(never, "a", { storage: "disk" as "memory" }), TypeError);
  await assert.rejects(openWith(never, "a", { storage: { getMany: () => [], scan: () => [] } as unknown as HostStorage }), /no method commit/);
  await assert.rejects(openWith(never, "a", { storege: "memory" } as OpenOptions), /Unknown option "storege"/);
});

test("unknown collection options reach the engine, which refuses them", async () => {
  const { engine, db } = await database();
  const options = { timeseries: { timeField: "at" }, expireAfter: 5, comment: undefined, promoteLongs: false, generateIds: true };
  await db.createCollection("c", options);
  assert.deepEqual(engine.commands.at(-1), { create: "c", timeseries: { timeField: "at" }, expireAfter: 5, $db: "plant" });
});

test("a promise is refused as a filter, because it would match everything", async () => {
  const { engine, db } = await database();
  const filter = Promise.resolve({ x: 1 }) as unknown as Document;
  const sent = engine.commands.length;
  await assert.rejects(db.collection("c").deleteMany(filter), /is an await missing/);
  assert.throws(() => db.collection("c").find(filter), /is an await missing/);
  // Other objects without own fields, from any realm, and functions inside objects are refused as well.
  const foreign = runInNewContext("Promise.resolve({ x: 1 })") as Document;
  class Hidden {
    #x = 1;
    x = (): number => this.#x;
  }
  for (const wrong of [new Set(["a"]), new URLSearchParams("x=1"), foreign, { then() {} }, new Hidden(), { x: () => 1 }, { x: filter }, { $or: [filter] }]) {
    await assert.rejects(db.collection("c").deleteMany(wrong as Document), /is an await missing|cannot contain a function/);
  }
  await assert.rejects(db.command({ delete: "c", deletes: [{ q: filter, limit: 0 }] }), /is an await missing/);
  await assert.rejects(db.collection("c").aggregate([{ $match: filter }]).toArray(), /is an await missing/);
  await assert.rejects(db.collection("c").createIndex({ x: 1 }, { partialFilterExpression: filter }), /is an await missing/);
  assert.equal(engine.commands.length, sent);
});

test("undefined is null everywhere in a query", async () => {
  const { engine, db } = await database();
  class Query {
    x = undefined;
    inner = new Map([["y", undefined]]);
  }
  await db.collection("c").deleteMany(new Query());
  await db.collection("c").deleteMany(new Map([["x", undefined]]) as Document);
  await db.collection("c").deleteMany(runInNewContext("({})") as Document);
  const filters = engine.commands.map((command) => (command["deletes"] as Document[] | undefined)?.[0]?.["q"] as Document).filter(Boolean);
  assert.deepEqual(filters, [{ x: null, inner: { y: null } }, { x: null }, {}]);
});

test("a promise in place of a value is refused, and nothing is sent", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  const [at, late, sent] = [new Date(), Promise.resolve("a"), engine.commands.length];
  await assert.rejects(c.insertOne({ at, m: late }), BadValueError);
  await assert.rejects(c.insertColumns({ at: [at] }, { meta: late }), BadValueError);
  await assert.rejects(c.updateMany({ m: "f" }, { $set: { m: late } }), BadValueError);
  assert.equal(engine.commands.length, sent);
});

test("if a later command of an insert fails, the error tells what was stored before", async () => {
  const { db } = await database();
  const documents = Array.from({ length: 100_001 }, (_, n) => ({ at: new Date(n < 100_000 ? n : NaN), _id: n }));
  for (const ordered of [true, false]) {
    await assert.rejects(db.collection("c").insertMany(documents, { ordered }), (error: unknown) => {
      assert.ok(error instanceof BulkWriteError);
      assert.deepEqual([error.insertedCount, Object.keys(error.result.insertedIds).length, error.code, error.codeName], [100_000, 100_000, 2, "BadValue"]);
      assert.match(error.message, /Document 100000, field "at": Invalid Date/);
      assert.equal(error.writeErrors[0]!.index, 100_000);
      return true;
    });
  }
});

test("createCollection returns the collection of its first argument", async () => {
  const { engine, db } = await database();
  await db.createCollection("c", { create: "other", timeseries: { timeField: "at" } } as never);
  assert.equal(engine.commands.at(-1)!["create"], "c");
});

test("createCollection sends the options under the server's names", async () => {
  const { engine, db } = await database();
  const timeseries = { timeField: "at", metaField: "station", granularity: "minutes" } as const;
  const collation = { locale: "de", strength: 2 };
  const weather = await db.createCollection("weather", { timeseries, expireAfterSeconds: 86_400, maxBytes: 1e6, collation });
  assert.deepEqual(engine.commands, [{ create: "weather", timeseries, expireAfterSeconds: 86_400, maxBytes: 1e6, collation, $db: "plant" }]);
  assert.deepEqual([weather.collectionName, weather.namespace, weather.dbName], ["weather", "plant.weather", "plant"]);
});

test("insertMany and find exchange documents", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  const documents = [{ at: new Date(1), v: 1 }, { at: new Date(2), v: 2 }];
  assert.deepEqual(await c.insertMany(documents, { ordered: false, comment: "x" }), { acknowledged: true, insertedCount: 2, insertedIds: {} });
  assert.deepEqual(engine.commands[0], { insert: "c", ordered: false, comment: "x", $db: "plant" });
  assert.deepEqual(await c.find().toArray(), documents);
  assert.deepEqual(await c.findOne({ v: 2 }), documents[1]);
  assert.equal(await c.findOne({ v: 3 }), null);
  assert.equal(await c.countDocuments({ v: 2 }), 1);
  assert.equal(await c.estimatedDocumentCount(), 2);
});

test("distinct returns the values at a path", async () => {
  const { engine, db } = await database();
  engine.intercept = () => ({ ok: 1, values: [1, "x", new Date(3)] });
  assert.deepEqual(await db.collection("c").distinct("a.b", { v: 2 }, { comment: "why" }), [1, "x", new Date(3)]);
  assert.deepEqual(engine.commands, [{ distinct: "c", query: { v: 2 }, key: "a.b", comment: "why", $db: "plant" }]);
  await assert.rejects(db.collection("c").distinct("a", "x" as unknown as Document), TypeError);
});

test("findOne is one command", async () => {
  const { engine, db } = await database();
  await db.collection("c").insertMany([{ v: 1 }, { v: 2 }]);
  await db.collection("c").findOne();
  assert.deepEqual(engine.commands.slice(1), [{ find: "c", filter: {}, limit: 1, batchSize: 1, singleBatch: true, $db: "plant" }]);
});

test("no _id is added, and an own _id is reported", async () => {
  const { db } = await database();
  const c = db.collection("c");
  assert.deepEqual((await c.insertMany([{ v: 1 }, { _id: "x", v: 2 }])).insertedIds, { 1: "x" });
  assert.deepEqual(await c.insertOne({ v: 3 }), { acknowledged: true, insertedId: undefined });
  assert.deepEqual(await c.findOne(), { v: 1 });
});

test("generateIds puts an ObjectId first, in the stored document only", async () => {
  const { db } = await database({ generateIds: true });
  const document = { v: 1 };
  const { insertedId } = await db.collection("c").insertOne(document);
  assert.ok(insertedId instanceof ObjectId);
  assert.deepEqual(document, { v: 1 });
  const stored = await db.collection("c").findOne();
  assert.deepEqual(stored, { _id: insertedId, v: 1 });
  assert.equal(Object.keys(stored!)[0], "_id");
  const { insertedIds } = await db.collection("c").insertMany([{ _id: 7 }, { _id: null }, {}]);
  assert.deepEqual([insertedIds[0], insertedIds[1]], [7, null]);
  assert.ok(insertedIds[2] instanceof ObjectId);
  assert.equal((await db.collection("d", { generateIds: false }).insertOne({ v: 1 })).insertedId, undefined);
});

test("documents without common keys go as BSON", async () => {
  const { engine, db } = await database();
  const documents: Document[] = Array.from({ length: 1000 }, (_, i) => ({ [`key${i}`]: i, n: new Int32(i) }));
  await db.collection("c").insertMany(documents);
  assert.equal((engine.commands[0]!["documents"] as Document[]).length, 1000);
  const { insertedIds } = await db.collection("d", { generateIds: true }).insertMany(documents);
  const [first] = engine.collections.get("d")!;
  assert.deepEqual(Object.keys(first!), ["_id", "key0", "n"]);
  assert.deepEqual(first!["_id"], insertedIds[0]);
});

test("documents beyond the limit of a command go in several, with overall indexes", async () => {
  const { engine, db } = await database();
  engine.refuse = (document) => ((document["n"] as number) % 100_001 === 100_000 ? "refused" : undefined);
  const documents = Array.from({ length: 250_000 }, (_, n) => ({ _id: n, n }));
  const error = await db.collection("c").insertMany(documents, { ordered: false }).then(
    () => assert.fail(),
    (e: unknown) => e,
  );
  assert.ok(error instanceof BulkWriteError);
  assert.equal(engine.commands.length, 3);
  assert.deepEqual(error.writeErrors, [{ index: 100_000, code: 2, errmsg: "refused" }, { index: 200_001, code: 2, errmsg: "refused" }]);
  assert.equal(error.insertedCount, 249_998);
  assert.equal(error.result.insertedIds[100_000], undefined);
  assert.equal(error.result.insertedIds[200_000], 200_000);
  engine.commands.length = 0;
  await assert.rejects(db.collection("c").insertMany(documents), (e: unknown) => e instanceof BulkWriteError && e.insertedCount === 100_000 && e.result.insertedIds[100_001] === undefined);
  assert.equal(engine.commands.length, 2);
});

test("a refused document rejects with a BulkWriteError that is a ServerError too", async () => {
  const { engine, db } = await database();
  engine.refuse = (document) => (document["v"] === 2 ? "'at' must be present" : undefined);
  const error = await db.collection("c").insertMany([{ v: 1 }, { v: 2 }, { v: 3 }]).catch((e: unknown) => e);
  assert.ok(error instanceof BulkWriteError && error instanceof ServerError && error instanceof TimepailError && error instanceof Error);
  assert.deepEqual([error.name, error.code, error.codeName, error.message, error.insertedCount], ["BulkWriteError", 2, "BadValue", "'at' must be present", 1]);
  assert.deepEqual(error.errorResponse["writeErrors"], error.writeErrors);
  await assert.rejects(db.collection("c").insertOne({ v: 2 }), BulkWriteError);
});

test("single inserts of one turn are one command per collection, and each has its own outcome", async () => {
  const { engine, db } = await database();
  engine.refuse = (document) => (document["v"] === 2 ? "'at' must be present" : undefined);
  const events: Document[] = [];
  db.on("change", (event) => events.push(event));
  const [c, d] = [db.collection("c"), db.collection("d", { generateIds: true })];
  const document: Document = { v: 1, at: new Date(1), deep: { list: [1] } };
  const calls = [c.insertOne(document)];
  document["at"].setTime(2);
  document["deep"].list.push(2);
  calls.push(c.insertOne({ v: 2 }), d.insertOne({ v: 3 }), c.insertOne({ v: NaN, at: new Date(NaN) }), c.insertOne(5 as unknown as Document), c.insertOne({ _id: 7, v: 4 }));
  const found = c.find().toArray();
  const [first, refused, other, invalid, wrong, last] = await Promise.allSettled(calls);
  const sent = engine.commands.map((command) => [command["insert"] ?? command["find"], (command["documents"] as Document[] | undefined)?.length]);
  assert.deepEqual([sent.slice(0, 2).sort(), sent.slice(2)], [[["c", 3], ["d", 1]], [["c", undefined]]]);
  assert.deepEqual(await found, [{ v: 1, at: new Date(1), deep: { list: [1] } }, { _id: 7, v: 4 }]);
  assert.deepEqual(first, { status: "fulfilled", value: { acknowledged: true, insertedId: undefined } });
  assert.deepEqual(last, { status: "fulfilled", value: { acknowledged: true, insertedId: 7 } });
  assert.ok(other?.status === "fulfilled" && other.value.insertedId instanceof ObjectId);
  assert.deepEqual(Object.keys(engine.collections.get("d")![0]!), ["_id", "v"]);
  const reason = (outcome: PromiseSettledResult<unknown> | undefined): any => (outcome as PromiseRejectedResult).reason;
  assert.ok(reason(refused) instanceof BulkWriteError);
  assert.deepEqual(reason(refused).writeErrors, [{ index: 0, code: 2, errmsg: "'at' must be present" }]);
  assert.deepEqual([reason(refused).insertedCount, reason(refused).result], [0, { acknowledged: true, insertedCount: 0, insertedIds: {} }]);
  assert.match(reason(invalid).message, /^Document 0, field "at": Invalid Date$/);
  assert.ok(reason(invalid) instanceof BadValueError && reason(wrong) instanceof TypeError);
  assert.deepEqual(events.map((event) => [event["collection"], event["count"]]), [["d", 1], ["c", 2]]);
});

test("a failed command fails each of its single inserts, and many go in several commands", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  const calls = Array.from({ length: 2001 }, (_, v) => c.insertOne({ v }));
  await Promise.all(calls);
  assert.deepEqual(engine.commands.map((command) => (command["documents"] as Document[]).length), [1000, 1000, 1]);
  engine.intercept = () => ({ ok: 0, code: 26, codeName: "NamespaceNotFound", errmsg: "gone" });
  const outcomes = await Promise.allSettled([c.insertOne({ v: 1 }), c.insertOne({ v: 2 })]);
  assert.ok(outcomes.every((outcome) => outcome.status === "rejected" && outcome.reason instanceof ServerError && outcome.reason.code === 26));
});

test("inserts before close are sent", async () => {
  const { engine, db } = await database();
  const insert = db.collection("c").insertOne({ v: 1 });
  await Promise.all([insert, db.close()]);
  assert.deepEqual(engine.collections.get("c"), [{ v: 1 }]);
});

test("nothing is sent when a value cannot be stored", async () => {
  const { engine, db } = await database();
  await assert.rejects(db.collection("c").insertMany([{ at: new Date() }, { at: new Date(NaN) }]), BadValueError);
  assert.deepEqual(engine.commands, []);
});

test("arguments of the wrong type reject with a TypeError", async () => {
  const { db } = await database();
  const c = db.collection("c");
  await assert.rejects(c.insertMany({} as unknown as Document[]), TypeError);
  await assert.rejects(c.insertMany([]), TypeError);
  await assert.rejects(c.insertMany([null as unknown as Document]), TypeError);
  await assert.rejects(c.insertOne(5 as unknown as Document), TypeError);
  await assert.rejects(c.insertColumns({}), TypeError);
  await assert.rejects(c.insertColumns({ a: [] }), TypeError);
  await assert.rejects(c.countDocuments("x" as unknown as Document), TypeError);
  await assert.rejects(c.deleteMany(null as unknown as Document), TypeError);
  await assert.rejects(c.createIndex(undefined as unknown as Document), /An index needs a key/);
  await assert.rejects(c.createIndexes({} as unknown as []), /must be an array/);
  await assert.rejects(db.command("ping" as unknown as Document), TypeError);
  assert.throws(() => db.collection(""), TypeError);
});

test("insertColumns sends the columns and the metadata", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  const result = await c.insertColumns({ at: Float64Array.of(1, 2), rpm: Int32Array.of(3, 4) }, { meta: { id: 7 }, ordered: false });
  assert.deepEqual(result, { acknowledged: true, insertedCount: 2 });
  assert.deepEqual(engine.commands[0], { insert: "c", ordered: false, columns: true, meta: { id: 7 }, $db: "plant" });
  await c.insertColumns({ at: [5] }, { timeUnit: "s" });
  assert.deepEqual(engine.commands.pop(), { insert: "c", columns: true, timeUnit: "s", $db: "plant" });
  engine.collections.get("c")!.pop();
  await c.insertColumns(JSON.parse('{ "__proto__": [5] }') as { at: number[] });
  assert.deepEqual(Object.keys(engine.collections.get("c")!.pop()!), ["__proto__"]);
  assert.deepEqual(await c.find().toArray(), [{ at: 1, rpm: 3, meta: { id: 7 } }, { at: 2, rpm: 4, meta: { id: 7 } }]);
});

test("long columns go in several commands", async () => {
  const { engine, db } = await database();
  const at = Float64Array.from({ length: 150_000 }, (_, i) => i);
  engine.refuse = (document) => (document["at"] === 120_000 ? "no" : undefined);
  const error = await db.collection("c").insertColumns({ at, word: Array.from(at, String) }, { ordered: false }).catch((e: unknown) => e);
  assert.ok(error instanceof BulkWriteError);
  assert.deepEqual([error.insertedCount, error.writeErrors[0]!.index, engine.commands.length], [149_999, 120_000, 2]);
});

test("deletes return their count", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  await c.insertMany([{ v: 1 }, { v: 1 }, { v: 2 }]);
  assert.deepEqual(await c.deleteOne({ v: 1 }, { hint: "h" }), { acknowledged: true, deletedCount: 1 });
  assert.deepEqual(await c.deleteMany({ v: 1 }), { acknowledged: true, deletedCount: 1 });
  assert.deepEqual(engine.commands[1], { delete: "c", deletes: [{ q: { v: 1 }, limit: 1, hint: "h" }], $db: "plant" });
  engine.intercept = () => ({ ok: 1, n: 0, writeErrors: [{ index: 0, code: 72, codeName: "InvalidOptions", errmsg: "no" }] });
  await assert.rejects(c.deleteMany({}), (error: unknown) => error instanceof ServerError && error.code === 72 && error.message === "no");
});

test("updates send their statement and return matched and modified counts", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  engine.intercept = () => ({ ok: 1, n: 3, nModified: 2 });
  const result = await c.updateMany({ m: 1, a: undefined }, { $set: { m: undefined } }, { arrayFilters: [{ i: 1 }], hint: "h", let: { v: 1 } });
  assert.deepEqual(result, { acknowledged: true, matchedCount: 3, modifiedCount: 2, upsertedCount: 0, upsertedId: null });
  const statement = { q: { m: 1, a: null }, u: { $set: { m: null } }, multi: true, arrayFilters: [{ i: 1 }], hint: "h" };
  assert.deepEqual(engine.commands[0], { update: "c", updates: [statement], let: { v: 1 }, $db: "plant" });
  engine.intercept = () => ({ ok: 1, n: 0, nModified: 0, writeErrors: [{ index: 0, code: 72, codeName: "InvalidOptions", errmsg: "no" }] });
  await assert.rejects(c.updateOne({}, { $set: { m: 1 } }), (error: unknown) => error instanceof ServerError && error.code === 72);
  assert.deepEqual(engine.commands[1]!["updates"], [{ q: {}, u: { $set: { m: 1 } }, multi: false }]);
});

test("findOneAndDelete returns the deleted document or null", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  engine.intercept = () => ({ ok: 1, lastErrorObject: { n: 1 }, value: { v: 1 } });
  assert.deepEqual(await c.findOneAndDelete({ v: undefined }, { sort: "v", projection: { v: 1 }, hint: "h" }), { v: 1 });
  const sent = { findAndModify: "c", query: { v: null }, remove: true, sort: { v: 1 }, fields: { v: 1 }, hint: "h", $db: "plant" };
  assert.deepEqual(engine.commands[0], sent);
  engine.intercept = () => ({ ok: 1, lastErrorObject: { n: 0 }, value: null });
  assert.equal(await c.findOneAndDelete({}), null);
});

test("undefined in a query is null, so that no condition gets lost", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  await c.insertMany([{ v: 1, a: undefined }]);
  assert.deepEqual(engine.collections.get("c"), [{ v: 1 }]);
  const filter = { station: undefined, $or: [{ a: undefined }], b: { $in: [undefined] } };
  const expected = { station: null, $or: [{ a: null }], b: { $in: [null] } };
  await c.find(filter).toArray();
  await c.find().filter(filter).toArray();
  await c.countDocuments(filter);
  await c.deleteMany(filter);
  await db.command({ delete: "c", deletes: [{ q: filter, limit: 0 }] });
  const [, find, chained, count, remove, command] = engine.commands;
  assert.deepEqual([find!["filter"], chained!["filter"], count!["query"], remove!["deletes"][0].q, command!["deletes"][0].q], Array(5).fill(expected));
  assert.equal(engine.collections.get("c")!.length, 1);
});

test("command returns the reply, batches included", async () => {
  const { db } = await database();
  await db.command({ insert: "c", documents: [{ n: 1, l: Long.fromNumber(5) }, { n: 2 }] });
  const reply = await db.command({ find: "c", filter: {}, batchSize: 1 });
  assert.deepEqual(reply["cursor"].firstBatch, [{ n: 1, l: 5 }]);
  const more = await db.command({ getMore: Long.fromNumber(reply["cursor"].id as number), collection: "c" }, { promoteValues: false });
  assert.equal(String(more["cursor"].nextBatch[0].n), "2");
  assert.deepEqual(await db.command({ ping: 1 }), { ok: 1 });
});

test("a failed command rejects with code, name, message and reply", async () => {
  const { db } = await database();
  await assert.rejects(db.command({ nonsense: 1 }), (error: unknown) => {
    assert.ok(error instanceof ServerError);
    assert.deepEqual([error.code, error.codeName, error.message, error.errmsg], [59, "CommandNotFound", "no such command: 'nonsense'", "no such command: 'nonsense'"]);
    assert.deepEqual(error.errorResponse["ok"], 0);
    return true;
  });
  await assert.rejects(db.command({ nonsense: 1 }, { promoteValues: false }), (error: unknown) => error instanceof ServerError && error.code === 59);
});

test("collections are listed and dropped", async () => {
  const { engine, db } = await database();
  await db.createCollection("a", { timeseries: { timeField: "at" } });
  await db.createCollection("b", { timeseries: { timeField: "at" } });
  assert.deepEqual((await db.listCollections().toArray()).map((info) => info.name), ["a", "b"]);
  assert.equal(await db.dropCollection("a"), true);
  assert.equal(await db.collection("b").drop(), true);
  assert.equal(await db.dropDatabase(), true);
  assert.deepEqual(await db.listCollections({}, { nameOnly: true }).toArray(), []);
  await db.listCollections({}, { batchSize: 2 }).toArray();
  assert.deepEqual(engine.commands.at(-1)!["cursor"], { batchSize: 2 });
});

test("flush and close reach the engine, and close only once", async () => {
  const { engine, db } = await database();
  await db.flush();
  await Promise.all([db.close(), db.close()]);
  await db.close();
  assert.deepEqual([engine.commands.filter((command) => "flush" in command).length, engine.closed], [1, 1]);
});

test("everything rejects with a ClosedError after close", async () => {
  const { engine, db } = await database();
  const c = db.collection("c");
  await db.close();
  for (const call of [() => c.insertOne({ v: 1 }), () => c.findOne(), () => c.insertColumns({ a: [1] }), () => db.command({ ping: 1 }), () => db.flush(), () => c.drop(), () => db.listCollections().toArray()]) {
    await assert.rejects(call, (error: unknown) => error instanceof ClosedError && error.code === 11600 && error.codeName === "InterruptedAtShutdown" && /"plant" is closed/.test(error.message));
  }
  assert.deepEqual(engine.commands, []);
});

test("await using closes the database", async () => {
  const { engine, db } = await database();
  {
    await using same = db;
    await same.command({ ping: 1 });
  }
  assert.equal(engine.closed, 1);
});

/** A minimal Web Locks implementation: a name is held until its callback settles. */
function fakeLocks(): { held: Set<string>; manager: object } {
  const held = new Set<string>();
  const request = async (name: string, hold: () => Promise<void>): Promise<void> => {
    held.add(name);
    await hold();
    held.delete(name);
  };
  return { held, manager: { request, query: async () => ({ held: [...held, "other", "timepail:plants:0123456789abcdef"].map((name) => ({ name })) }) } };
}

async function withNavigator(manager: object | undefined, run: () => Promise<void>): Promise<void> {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { locks: manager }, configurable: true });
  try {
    await run();
  } finally {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete (globalThis as { navigator?: unknown }).navigator;
  }
}

test("a lock shows that the context is alive, and journals of others are folded a second later", async (t) => {
  const { held, manager } = fakeLocks();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await withNavigator(manager, async () => {
    const first = await database({ storage: "indexeddb" });
    const second = await database({ storage: "indexeddb" });
    t.mock.timers.tick(999);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(second.engine.commands, [], "what a page asks first does not wait for it");
    t.mock.timers.tick(1);
    await new Promise((resolve) => setImmediate(resolve));
    const contexts = [first, second].map(({ engine }) => engine.options!.context);
    assert.deepEqual([...held], contexts.map((context) => `timepail:plant:${context}`));
    assert.deepEqual(second.engine.commands, [{ foldJournals: 1, alive: contexts, $db: "plant" }]);
    await first.db.close();
    await second.db.close();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(held.size, 0);
  });
});

test("the lock is released when opening fails", async () => {
  const { held, manager } = fakeLocks();
  await withNavigator(manager, async () => {
    await assert.rejects(openWith(async () => Promise.reject(new Error("no storage")), "plant", { storage: "indexeddb" }), /no storage/);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(held.size, 0);
  });
});

test("browsers without locks, or that refuse them, can still open", async () => {
  const refusing = { request: () => Promise.reject(new Error("denied")), query: () => Promise.reject(new Error("denied")) };
  for (const manager of [undefined, refusing]) {
    await withNavigator(manager, async () => {
      const { engine, db } = await database({ storage: "indexeddb" });
      await db.command({ ping: 1 });
      assert.deepEqual(engine.commands, [{ ping: 1, $db: "plant" }]);
      await db.close();
    });
  }
});

test("documents and their array may be changed as soon as insertMany has returned", async () => {
  const { db, engine } = await database();
  for (const rows of [2, 20_000]) {
    engine.collections.clear();
    const documents = Array.from({ length: rows }, (_, n) => ({ at: new Date(n), place: { n }, n }));
    const running = db.collection("c").insertMany(documents);
    for (const document of documents) {
      document.at.setTime(-1);
      document.place.n = document.n = -1;
    }
    documents.length = 0;
    assert.equal((await running).insertedCount, rows);
    assert.ok(engine.collections.get("c")!.every((document, n) => document["n"] === n && document["place"].n === n && +document["at"] === n));
  }
});

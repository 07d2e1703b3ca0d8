// Events of a database, and maintenance in the background, over a fake engine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Long } from "bson";
import { openWith } from "../src/database.ts";
import { Events } from "../src/events.ts";
import type { ChangeEvent } from "../src/types.ts";
import { FakeEngine } from "./fake-engine.ts";

async function watched() {
  const engine = new FakeEngine();
  const db = await openWith(async () => engine, "plant", { storage: "memory" });
  const heard: ChangeEvent[] = [];
  db.on("change", (change) => heard.push(change));
  return { engine, db, heard };
}

test("inserts, creates and drops emit events with their counts", async () => {
  const { db, heard } = await watched();
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertMany([{ at: new Date(1) }, { at: new Date(2) }]);
  await c.find().toArray();
  await db.dropDatabase();
  assert.deepEqual(heard, [
    { operation: "create", collection: "c", local: true },
    { operation: "insert", collection: "c", local: true, count: 2 },
    { operation: "dropDatabase", local: true },
  ]);
});

test("a delete of nothing and a failed one emit no event", async () => {
  const { engine, db, heard } = await watched();
  engine.intercept = (command) => ("delete" in command ? { ok: 1, n: 0 } : "drop" in command ? { ok: 0, code: 26, codeName: "NamespaceNotFound", errmsg: "x" } : undefined);
  await db.collection("c").deleteMany({});
  await db.dropCollection("c").catch(() => {});
  assert.deepEqual(heard, []);
  engine.intercept = (command) => ("delete" in command ? { ok: 1, n: 3 } : undefined);
  await db.collection("c").deleteMany({});
  assert.deepEqual(heard, [{ operation: "delete", collection: "c", local: true, count: 3 }]);
});

test("an update emits its changes, and findOneAndDelete a delete", async () => {
  const { engine, db, heard } = await watched();
  const c = db.collection("c");
  engine.intercept = () => ({ ok: 1, n: 3, nModified: 0 });
  await c.updateMany({}, { $set: { m: 1 } });
  engine.intercept = () => ({ ok: 1, lastErrorObject: { n: 0 }, value: null });
  await c.findOneAndDelete({});
  assert.deepEqual(heard, []);
  engine.intercept = () => ({ ok: 1, n: 3, nModified: 2 });
  await c.updateMany({}, { $set: { m: 1 } });
  engine.intercept = () => ({ ok: 1, lastErrorObject: { n: 1 }, value: {} });
  await c.findOneAndDelete({});
  assert.deepEqual(heard, [
    { operation: "update", collection: "c", local: true, count: 2 },
    { operation: "delete", collection: "c", local: true, count: 1 },
  ]);
});

test("$out emits an event, and a reply with another `collections` does not", async () => {
  const { engine, db, heard } = await watched();
  engine.intercept = () => ({ ok: 1, cursor: { id: 0, ns: "plant.c", firstBatch: [] } });
  await db.collection("c").aggregate([{ $out: "d" }]).toArray();
  await db.collection("c").aggregate([{ $match: {} }, { $out: { db: "plant", coll: "e" } }]).toArray();
  await db.collection("c").aggregate([{ $match: {} }]).toArray();
  engine.intercept = () => ({ ok: 1, collections: 3 });
  assert.equal((await db.command({ dbStats: 1 }))["collections"], 3);
  assert.deepEqual(heard, ["d", "e"].map((collection) => ({ operation: "replace", local: true, collection })));
});

test("retention emits an event per collection", async () => {
  const { engine, db, heard } = await watched();
  const gone = { nBuckets: Long.fromNumber(2), nMeasurements: Long.fromNumber(30), nBytes: Long.fromNumber(999) };
  const collections = [{ name: "a", ...gone, oldest: new Date(7) }, { name: "b", ...gone, oldest: null }];
  engine.intercept = (command) => ("expire" in command ? { ok: 1, ...gone, collections } : undefined);
  await db.command({ expire: 1 });
  const expected = { operation: "expire", local: true, count: 30, buckets: 2, bytes: 999 };
  assert.deepEqual(heard, [{ ...expected, collection: "a", oldest: new Date(7) }, { ...expected, collection: "b", oldest: null }]);
});

test("a removed listener gets no events, and one that throws affects no other", async (t) => {
  const { db, heard } = await watched();
  const queued: (() => void)[] = [];
  t.mock.method(globalThis, "queueMicrotask", (callback: () => void) => void queued.push(callback));
  const never = (): void => assert.fail();
  db.on("change", never).off("change", never);
  db.on("change", () => {
    throw new Error("of a listener");
  });
  await db.createCollection("c", { timeseries: { timeField: "at" } });
  assert.equal(heard.length, 1);
  assert.throws(() => queued.forEach((callback) => callback()), /of a listener/);
  assert.throws(() => db.on("insert" as "change", never), TypeError);
  assert.throws(() => db.on("change", undefined as unknown as () => void), /must be a function/);
  assert.throws(() => db.off("insert" as "change", never), TypeError);
});

test("a reply can start folds and retention in the background, each once", async () => {
  const { engine, db } = await watched();
  const run = engine.run_command.bind(engine);
  engine.run_command = async (command, payload) => ({ ...(await run(command, payload)), due: true });
  engine.intercept = (command) => ("maintain" in command ? { ok: 0, code: 96, codeName: "OperationFailed", errmsg: "no" } : undefined);
  await db.command({ ping: 1 });
  await db.command({ ping: 1 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(engine.commands.map((command) => Object.keys(command)[0]), ["ping", "maintain", "ping", "maintain"]);
});

test("folds wait until the page is idle, unless the engine has a thread of its own", async (t) => {
  const idle: (() => void)[] = [];
  const host = globalThis as { requestIdleCallback?: unknown };
  host.requestIdleCallback = (callback: () => void) => idle.push(callback);
  t.after(() => delete host.requestIdleCallback);
  const names = async (isApart: boolean): Promise<string[]> => {
    const { engine, db } = await watched();
    Object.assign(engine, { isApart });
    const run = engine.run_command.bind(engine);
    engine.run_command = async (command, payload) => ({ ...(await run(command, payload)), due: true });
    engine.intercept = () => ({ ok: 1 });
    await db.command({ ping: 1 });
    return engine.commands.map((command) => Object.keys(command)[0]!);
  };
  assert.deepEqual([await names(false), idle.length], [["ping"], 1]);
  assert.deepEqual([await names(true), idle.length], [["ping", "maintain"], 1]);
});

test("with an interval, retention runs by itself until the database is closed", async () => {
  const engine = new FakeEngine();
  const expired = new Promise<void>((resolve) => {
    engine.intercept = (command) => {
      if (!("expire" in command)) return undefined;
      resolve();
      return { ok: 1 };
    };
  });
  const db = await openWith(async () => engine, "plant", { storage: "memory", retentionIntervalMS: 1 });
  // The timer does not keep the process alive.
  const alive = setInterval(() => {}, 1000);
  await expired;
  clearInterval(alive);
  await db.close();
  const count = engine.commands.length;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(engine.commands.length, count);
});

test("other contexts get change events, marked as foreign: the first insert at once, those that follow combined", async () => {
  const [here, there] = [new Events("shared", true), new Events("shared", true)];
  // The channel does not keep the process alive.
  const alive = setInterval(() => {}, 1000);
  const heard: ChangeEvent[] = [];
  const dropped = new Promise<void>((resolve) => {
    there.on((change) => {
      heard.push(change);
      if (change.operation === "drop") resolve();
    });
  });
  for (let i = 0; i < 10; i++) here.note({ insert: "c" }, { n: 3 });
  here.note({ insert: "d" }, { n: 1 });
  here.note({ drop: "c" }, {});
  await dropped;
  clearInterval(alive);
  assert.deepEqual(heard, [
    { operation: "insert", collection: "c", count: 3, local: false },
    { operation: "insert", collection: "c", count: 27, local: false },
    { operation: "insert", collection: "d", count: 1, local: false },
    { operation: "drop", collection: "c", local: false },
  ]);
  here.close();
  there.close();
});

test("inserts of others are combined for a pause, and sent after it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: unknown[] = [];
  t.mock.method(BroadcastChannel.prototype, "postMessage", (event: unknown) => void sent.push(event));
  const events = new Events("paused", true);
  const insert = (n: number): void => events.note({ insert: "c" }, { n });
  const counts = (): unknown[] => sent.map((event) => (event as ChangeEvent).count);
  insert(1);
  assert.deepEqual(counts(), [1]);
  insert(2);
  insert(3);
  t.mock.timers.tick(15);
  assert.deepEqual(counts(), [1]);
  t.mock.timers.tick(1);
  assert.deepEqual(counts(), [1, 5]);
  insert(4);
  t.mock.timers.tick(16);
  assert.deepEqual(counts(), [1, 5, 4]);
  t.mock.timers.tick(16);
  insert(6);
  assert.deepEqual(counts(), [1, 5, 4, 6], "after a pause without inserts, one is sent at once");
  insert(7);
  events.close();
  assert.deepEqual(counts(), [1, 5, 4, 6, 7]);
});

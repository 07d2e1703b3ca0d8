// Signals and time limits: what is sent, what rejects, and what the engine makes of them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { deserialize, type Document } from "bson";
import { openWith, type Database } from "../src/database.ts";
import type { CommandReply } from "../src/engine.ts";
import { AbortedWriteError, ServerError } from "../src/errors.ts";
import { open } from "../src/entry/node.js";
import { FakeEngine } from "./fake-engine.ts";

/** An engine that answers a held command only when the test releases it. */
class SlowEngine extends FakeEngine {
  /** The commands that wait, by name. */
  readonly held = new Map<string, () => void>();
  /** Names of the commands to hold. */
  holds: string[] = [];

  override async run_command(bytes: Uint8Array, payload?: Uint8Array | null): Promise<CommandReply> {
    const answer = super.run_command(bytes, payload);
    const name = Object.keys(deserialize(bytes))[0]!;
    if (this.holds.includes(name)) await new Promise<void>((resolve) => this.held.set(name, resolve));
    return answer;
  }
}

async function database(holds: string[]): Promise<{ engine: SlowEngine; db: Database }> {
  const engine = new SlowEngine();
  engine.holds = holds;
  engine.collections.set("c", Array.from({ length: 300 }, (_, n) => ({ n })));
  return { engine, db: await openWith(async () => engine, "db", { storage: "memory" }) };
}

const names = (engine: FakeEngine): string[] => engine.commands.map((command) => Object.keys(command)[0]!);
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Every method that takes a signal. */
const METHODS: Record<string, (db: Database, options: { signal: AbortSignal; maxTimeMS?: number }) => Promise<unknown>> = {
  find: (db, options) => db.collection("c").find({}, options).toArray(),
  aggregate: (db, options) => db.collection("c").aggregate([], options).toArray(),
  count: (db, options) => db.collection("c").countDocuments({}, options),
  distinct: (db, options) => db.collection("c").distinct("n", {}, options),
  insert: (db, options) => db.collection("c").insertMany([{ n: 1 }], options),
  insertOne: (db, options) => db.collection("c").insertOne({ n: 1 }, options),
  insertColumns: (db, options) => db.collection("c").insertColumns({ n: [1] }, options),
  delete: (db, options) => db.collection("c").deleteMany({}, options),
  update: (db, options) => db.collection("c").updateMany({}, { $set: { m: 1 } }, options),
  bulkWrite: (db, options) => db.collection("c").bulkWrite([{ deleteMany: { filter: {} } }], options),
  createIndexes: (db, options) => db.collection("c").createIndex({ n: 1 }, options),
  flush: (db, options) => db.flush(options),
  validate: (db, options) => db.command({ validate: "c" }, options),
  expire: (db, options) => db.command({ expire: 1 }, options),
};

test("a signal that has aborted rejects with its reason, and nothing is sent", async () => {
  const { engine, db } = await database([]);
  const signal = AbortSignal.abort("enough");
  for (const [name, method] of Object.entries(METHODS)) {
    await assert.rejects(method(db, { signal }), (reason) => reason === "enough", name);
  }
  assert.deepEqual(engine.commands, []);
});

test("an abort rejects at once, and ends the command in the engine; a write says that it was sent", async () => {
  for (const [name, method] of Object.entries(METHODS)) {
    const command = /^insert/.test(name) ? "insert" : name === "bulkWrite" ? "delete" : name;
    const { engine, db } = await database([command]);
    const controller = new AbortController();
    const running = method(db, { signal: controller.signal, maxTimeMS: 5 });
    await settled();
    controller.abort("enough");
    await assert.rejects(running, (reason) =>
      /^(find|aggregate|count|distinct|flush|validate)$/.test(name)
        ? reason === "enough"
        : reason instanceof AbortedWriteError && reason.cause === "enough" && reason.insertedCount === 0 && /not undone/.test(reason.message), name);
    const [sent, kill] = engine.commands as [Document, Document];
    assert.deepEqual(names(engine), [command, "killOp"]);
    assert.equal(sent["maxTimeMS"], 5);
    assert.equal("signal" in sent, false);
    assert.ok(kill["op"] > 0 && kill["op"] === sent["opKey"]);
    engine.held.get(command)!();
    await settled();
  }
});

test("a signal that never aborts changes nothing, and nobody listens to it afterwards", async () => {
  const { engine, db } = await database([]);
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...given: Parameters<typeof addEventListener>) => (listeners++, addEventListener.apply(signal, given));
  signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => (listeners--, removeEventListener.apply(signal, given));
  assert.equal((await db.collection("c").find({}, { signal, batchSize: 100 }).toArray()).length, 300);
  assert.deepEqual(names(engine), ["find", "getMore", "getMore"]);
  assert.equal(new Set(engine.commands.map((command) => command["opKey"])).size, 3);
  assert.equal(listeners, 0);
});

test("a cursor whose signal aborts between two batches rejects and is closed in the engine", async () => {
  const { engine, db } = await database([]);
  const controller = new AbortController();
  const cursor = db.collection("c").find({}, { signal: controller.signal, batchSize: 2 });
  assert.deepEqual(await cursor.next(), { n: 0 });
  controller.abort("enough");
  await assert.rejects(cursor.hasNext(), (reason) => reason === "enough");
  await settled();
  assert.equal(cursor.closed, true);
  assert.deepEqual(names(engine), ["find", "killCursors"]);
  assert.equal(engine.cursors.size, 0);
});

test("a cursor whose first batch comes after the abort is closed in the engine", async () => {
  const { engine, db } = await database(["find"]);
  const controller = new AbortController();
  const first = db.collection("c").find({}, { signal: controller.signal, batchSize: 2 }).next();
  await settled();
  controller.abort("enough");
  await assert.rejects(first, (reason) => reason === "enough");
  engine.held.get("find")!();
  await settled();
  assert.deepEqual(names(engine), ["find", "killOp", "killCursors"]);
  assert.equal(engine.cursors.size, 0);
});

// The name of the collection began behind the first dot of the namespace, so the engine knew no such cursor.
test("such a cursor is closed in a database with dots in its name, too", async () => {
  const engine = new SlowEngine();
  engine.holds = ["find"];
  engine.intercept = (command) => ({ ok: 1, ...("find" in command && { cursor: { id: 7, ns: "plant.north.c", firstBatch: [] } }) });
  const db = await openWith(async () => engine, "plant.north", { storage: "memory" });
  const controller = new AbortController();
  const first = db.collection("c").find({}, { signal: controller.signal }).next();
  await settled();
  controller.abort("enough");
  await assert.rejects(first, (reason) => reason === "enough");
  engine.held.get("find")!();
  await settled();
  assert.equal(engine.commands.at(-1)!["killCursors"], "c");
});

test("an insert of several commands says how much is stored for certain", async () => {
  const { engine, db } = await database([]);
  const controller = new AbortController();
  engine.intercept = (command) => {
    if ("insert" in command && engine.commands.length === 2) controller.abort("enough");
    return "insert" in command ? { ok: 1, n: 100_000 } : undefined;
  };
  const many = db.collection("c").insertColumns({ n: new Float64Array(250_000) }, { signal: controller.signal });
  await assert.rejects(many, (error) => error instanceof AbortedWriteError && error.insertedCount === 100_000 && /100000 measurements are stored/.test(error.message));
  assert.deepEqual(names(engine), ["insert", "insert", "killOp"]);
});

test("a bulkWrite says what is done for certain, wherever it is aborted", async () => {
  const operations = [
    { insertOne: { document: { n: 1000 } } },
    { insertOne: { document: { n: 1001 } } },
    { deleteMany: { filter: { n: 7 } } },
    { updateMany: { filter: { n: 8 }, update: { $set: { m: 1 } } } },
    { insertOne: { document: { n: 1002 } } },
  ];
  // The command that waits when the signal aborts, and the counts of what was done before it.
  const cases: [string, number, number, number][] = [
    ["insert", 0, 0, 0],
    ["delete", 2, 0, 0],
    ["update", 2, 1, 0],
  ];
  for (const [command, insertedCount, deletedCount, modifiedCount] of cases) {
    const { engine, db } = await database([command]);
    const controller = new AbortController();
    const running = db.collection("c").bulkWrite(operations, { signal: controller.signal, maxTimeMS: 9 });
    await settled();
    controller.abort("enough");
    await assert.rejects(running, (error: unknown) => {
      assert.ok(error instanceof AbortedWriteError && error.cause === "enough", command);
      const { result } = error;
      assert.deepEqual([error.insertedCount, result!.insertedCount, result!.deletedCount, result!.modifiedCount], [insertedCount, insertedCount, deletedCount, modifiedCount]);
      assert.equal(/2 measurements are stored/.test(error.message), insertedCount > 0);
      return true;
    });
    assert.deepEqual(names(engine).at(-1), "killOp");
    assert.ok(engine.commands.slice(0, -1).every(({ maxTimeMS }) => maxTimeMS === 9));
  }
  // Between two commands nothing is in progress, and the error still tells what was done.
  const { engine, db } = await database([]);
  const controller = new AbortController();
  engine.intercept = (command) => ("delete" in command ? (controller.abort("enough"), undefined) : undefined);
  await assert.rejects(db.collection("c").bulkWrite(operations, { signal: controller.signal }), (error: unknown) => error instanceof AbortedWriteError && error.insertedCount === 2);
});

test("$out counts as a write", async () => {
  const { engine, db } = await database(["aggregate"]);
  const controller = new AbortController();
  const written = db.collection("c").aggregate([{ $out: "d" }], { signal: controller.signal }).toArray();
  await settled();
  controller.abort();
  await assert.rejects(written, AbortedWriteError);
  engine.held.get("aggregate")!();
});

test("cursors take a time limit as an option and as a method, which must be an integer", async () => {
  const { engine, db } = await database([]);
  await db.collection("c").find().maxTimeMS(7).batchSize(200).toArray();
  assert.deepEqual(engine.commands.map((command) => command["maxTimeMS"]), [7, undefined]);
  engine.intercept = () => ({ ok: 1, stages: [] });
  const pipeline = db.collection("c").aggregate([], { maxTimeMS: 3 });
  await pipeline.clone().maxTimeMS(8).explain();
  const { explain, maxTimeMS } = engine.commands.pop()!;
  assert.deepEqual([maxTimeMS, "maxTimeMS" in (explain as Document)], [8, false]);
  await pipeline.explain();
  assert.equal(engine.commands.pop()!["maxTimeMS"], 3);
  assert.throws(() => db.collection("c").find().maxTimeMS(1.5), TypeError);
  assert.throws(() => db.collection("c").find({}, { maxTimeMS: "1" as never }), TypeError);
});

/** A pipeline that takes much longer than a turn. */
const LONG = [
  { $group: { _id: { $dateTrunc: { date: "$at", unit: "minute" } }, mean: { $avg: { $add: ["$v", "$w"] } }, spread: { $stdDevPop: "$w" }, all: { $addToSet: "$v" } } },
  { $count: "n" },
];

test("while the engine works, the event loop has its turns, and time limits and signals end the work", async () => {
  const bytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`../dist/${name}`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;
  const db = await open("turns", { storage: "memory", wasm: bytes("timepail.wasm"), wasmMore: bytes("timepail-more.wasm") });
  const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  const rows = 100_000;
  for (let part = 0; part < 4; part++) {
    const at = Float64Array.from({ length: rows }, (_, row) => 1.7e12 + part * 1e9 + row * 1000);
    await c.insertColumns({ at, v: at.map((ms) => ms % 77), w: at.map((ms) => Math.sin(ms)) }, { meta: part });
  }
  let turns = 0;
  let stopped = false;
  const turn = (): void => {
    turns++;
    if (!stopped) setImmediate(turn);
  };
  setImmediate(turn);
  assert.equal((await c.aggregate(LONG).toArray()).length, 1);
  assert.ok(turns > 1, `${turns} turns`);
  await assert.rejects(c.aggregate(LONG, { maxTimeMS: 1 }).toArray(), (error) => error instanceof ServerError && error.code === 50 && error.codeName === "MaxTimeMSExpired");
  const controller = new AbortController();
  const running = c.aggregate(LONG, { signal: controller.signal }).toArray();
  const before = turns;
  setImmediate(() => controller.abort());
  await assert.rejects(running, (reason) => reason === controller.signal.reason);
  assert.ok(turns - before < 9, "it has not waited for the end");
  stopped = true;
  // The engine has dropped the pipeline, and answers as before.
  assert.equal(await c.countDocuments(), 4 * rows);
  await db.close();
});

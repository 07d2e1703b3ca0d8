// Cursors: laziness, batches, closing.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Document } from "bson";
import { Database, openWith } from "../src/database.ts";
import { ClosedError, CursorExhaustedError, CursorInUseError, ServerError } from "../src/errors.ts";
import type { FindCursor } from "../src/find.ts";
import { FakeEngine } from "./fake-engine.ts";

async function database(count: number): Promise<{ engine: FakeEngine; db: Database; find: () => FindCursor<Document> }> {
  const engine = new FakeEngine();
  engine.collections.set("c", Array.from({ length: count }, (_, n) => ({ n, s: n % 2 ? "odd" : "even" })));
  const db = await openWith(async () => engine, "db", { storage: "memory" });
  return { engine, db, find: () => db.collection("c").find() };
}

const names = (engine: FakeEngine): string[] => engine.commands.map((command) => Object.keys(command)[0]!);

test("a cursor sends nothing before it is read", async () => {
  const { engine, find } = await database(3);
  const cursor = find().filter({ s: "odd" }).sort({ n: -1 }).limit(5).skip(0).project({ n: 1 }).batchSize(2).hint("x").collation({ locale: "en" }).comment("y");
  await Promise.resolve();
  assert.deepEqual(engine.commands, []);
  assert.deepEqual(await cursor.next(), { n: 1, s: "odd" });
  assert.deepEqual(engine.commands, [
    {
      find: "c", filter: { s: "odd" }, sort: { n: -1 }, projection: { n: 1 }, hint: "x", skip: 0, limit: 5, batchSize: 2,
      collation: { locale: "en" }, comment: "y", $db: "db",
    },
  ]);
});

test("an aggregation sends its stages, and asks for batches as a find does", async () => {
  const { engine, db } = await database(3);
  engine.intercept = (command) =>
    "aggregate" in command ? { ok: 1, cursor: { id: 0n, ns: "db.c", firstBatch: [{ _id: "a", n: 2 }] } } : undefined;
  const stages = [{ $match: { s: undefined } }];
  const cursor = db.collection("c").aggregate(stages, { hint: "x", let: { k: 1 } }).addStage({ $count: "n" });
  assert.deepEqual(engine.commands, []);
  assert.deepEqual(await cursor.toArray(), [{ _id: "a", n: 2 }]);
  assert.deepEqual(engine.commands.pop(), {
    aggregate: "c", pipeline: [{ $match: { s: null } }, { $count: "n" }], cursor: { batchSize: 65_536 }, hint: "x", let: { k: 1 }, $db: "db",
  });
  assert.equal(stages.length, 1, "what was given stays as it is");
  assert.throws(() => cursor.addStage({ $limit: 1 }), CursorInUseError);
  assert.throws(() => cursor.batchSize(1), CursorInUseError);
  await db.collection("c").aggregate().batchSize(2).next();
  assert.deepEqual(engine.commands.pop()!["cursor"], { batchSize: 2 });
  await db.collection("c").aggregate().match({ n: 1 }).sort([["n", -1]]).skip(1).limit(2).unwind("$v").group({ _id: "$n" }).project({ _id: 0 }).downsample({ field: "n", points: 9, sortBy: { _id: 1 } }).next();
  assert.deepEqual(engine.commands.pop()!["pipeline"], [
    { $match: { n: 1 } }, { $sort: { n: -1 } }, { $skip: 1 }, { $limit: 2 }, { $unwind: "$v" }, { $group: { _id: "$n" } }, { $project: { _id: 0 } },
    { $downsample: { field: "n", points: 9, sortBy: { _id: 1 } } },
  ]);
  assert.deepEqual(await cursor.clone().map((row) => row["n"]).next(), 2);
  assert.deepEqual(engine.commands.pop()!["cursor"], {});
  assert.deepEqual({ ...(await cursor.clone().toColumns()) }, { _id: ["a"], n: Float64Array.of(2) });
  assert.throws(() => db.collection("c").aggregate({} as never), TypeError);
});

test("explain does not change the cursor", async () => {
  const { engine, find } = await database(3);
  engine.intercept = (command) => ("explain" in command ? { ok: 1, stages: [] } : undefined);
  const cursor = find().filter({ s: "even" }).limit(1);
  for (const [given, sent] of [
    [undefined, "allPlansExecution"], [true, "allPlansExecution"], [false, "queryPlanner"], ["executionStats", "executionStats"],
  ] as const) {
    assert.deepEqual(await cursor.explain(given), { ok: 1, stages: [] });
    assert.deepEqual(engine.commands.pop(), { explain: { find: "c", filter: { s: "even" }, limit: 1 }, verbosity: sent, $db: "db" });
  }
  assert.deepEqual(await cursor.toArray(), [{ n: 0, s: "even" }]);
  const pipeline = [{ $count: "n" }];
  await database(3).then(async ({ engine, db }) => {
    engine.intercept = (command) => ("explain" in command ? { ok: 1, stages: [] } : undefined);
    assert.deepEqual(await db.collection("c").aggregate(pipeline).explain("queryPlanner"), { ok: 1, stages: [] });
    assert.deepEqual(engine.commands.pop()!["explain"], { aggregate: "c", pipeline, cursor: {} });
  });
});

test("a cursor that is closed unread sends nothing at all", async () => {
  const { engine, find } = await database(3);
  const cursor = find();
  await cursor.close();
  assert.equal(cursor.closed, true);
  assert.equal(await cursor.hasNext(), false);
  await assert.rejects(cursor.next(), CursorExhaustedError);
  assert.deepEqual(engine.commands, []);
});

test("a cursor that has ended says so, until it is rewound", async () => {
  const { find } = await database(1);
  const cursor = find();
  assert.equal((await cursor.next())!["n"], 0);
  assert.equal(await cursor.next(), null);
  for (const again of [() => cursor.next(), () => cursor.tryNext()]) await assert.rejects(again, { name: "CursorExhaustedError", message: /at its end, or closed: rewind/ });
  assert.deepEqual([await cursor.hasNext(), await cursor.toArray()], [false, []]);
  await cursor.rewind();
  assert.equal((await cursor.next())!["n"], 0);
});

test("next and hasNext go through all batches and end", async () => {
  const { engine, find } = await database(5);
  const cursor = find().batchSize(2);
  const seen: unknown[] = [];
  while (await cursor.hasNext()) seen.push((await cursor.next())!["n"]);
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  await assert.rejects(cursor.next(), CursorExhaustedError);
  assert.equal(cursor.closed, true);
  assert.deepEqual(names(engine), ["find", "getMore", "getMore"]);
  assert.deepEqual([engine.commands[1]!["collection"], engine.commands[1]!["batchSize"]], ["c", 2]);
});

test("iteration asks for ordinary batches", async () => {
  const { engine, find } = await database(300);
  let sum = 0;
  for await (const document of find()) sum += document["n"] as number;
  assert.equal(sum, (299 * 300) / 2);
  assert.deepEqual(names(engine), ["find", "getMore"]);
  assert.ok(!("batchSize" in engine.commands[0]!));
});

test("toArray and toColumns ask for everything at once", async () => {
  const { engine, find } = await database(300);
  assert.equal((await find().toArray()).length, 300);
  assert.deepEqual((await find().toColumns())["n"], Float64Array.from({ length: 300 }, (_, n) => n));
  assert.deepEqual(names(engine), ["find", "find"]);
});

test("toArray and toColumns respect a batch size", async () => {
  const { engine, find } = await database(5);
  assert.equal((await find().batchSize(2).toArray()).length, 5);
  const { n, s } = await find().batchSize(2).toColumns();
  assert.deepEqual([n, s], [Float64Array.of(0, 1, 2, 3, 4), ["even", "odd", "even", "odd", "even"]]);
  assert.deepEqual(names(engine), ["find", "getMore", "getMore", "find", "getMore", "getMore"]);
});

test("toArray and toColumns return the remaining rows of a cursor in use", async () => {
  const { find } = await database(5);
  const cursor = find().batchSize(2);
  await cursor.next();
  assert.deepEqual((await cursor.toArray()).map((document) => document["n"] as number), [1, 2, 3, 4]);
  const columns = find().batchSize(2);
  await columns.next();
  assert.deepEqual((await columns.toColumns())["n"], Float64Array.of(1, 2, 3, 4));
  assert.deepEqual(await find().filter({ n: -1 }).toColumns(), {});
});

test("leaving a loop closes the cursor in the engine", async () => {
  const { engine, find } = await database(5);
  for await (const document of find().batchSize(2)) if (document["n"] === 1) break;
  assert.deepEqual(names(engine), ["find", "killCursors"]);
  assert.equal(engine.cursors.size, 0);
  await assert.rejects(async () => {
    for await (const document of find().batchSize(2)) if (document["n"] === 1) throw new Error("mine");
  }, /mine/);
  assert.equal(engine.cursors.size, 0);
});

test("close kills the engine's cursor, once", async () => {
  const { engine, find } = await database(5);
  const cursor = find().batchSize(2);
  await cursor.next();
  await Promise.all([cursor.close(), cursor.close()]);
  await cursor.close();
  assert.deepEqual(names(engine), ["find", "killCursors"]);
  await assert.rejects(cursor.next(), CursorExhaustedError);
});

test("close during a request kills the cursor that the answer brings", async () => {
  const { engine, find } = await database(5);
  const cursor = find().batchSize(2);
  const [document] = await Promise.all([cursor.next(), cursor.close()]);
  assert.equal(document, null);
  assert.deepEqual(names(engine), ["find", "killCursors"]);
});

test("await using closes the cursor", async () => {
  const { engine, find } = await database(5);
  {
    await using cursor = find().batchSize(2);
    await cursor.next();
  }
  assert.equal(engine.cursors.size, 0);
});

test("concurrent calls share a request and return each document once", async () => {
  const { engine, find } = await database(5);
  const cursor = find().batchSize(2);
  const got = await Promise.all(Array.from({ length: 7 }, () => cursor.next()));
  assert.deepEqual(got.map((document) => document?.["n"] as number | undefined).sort(), [0, 1, 2, 3, 4, undefined, undefined]);
  assert.deepEqual(names(engine), ["find", "getMore", "getMore"]);
});

test("a cursor in use cannot be configured", async () => {
  const { find } = await database(5);
  const cursor = find();
  const started = cursor.next();
  assert.throws(() => cursor.sort({ n: 1 }), CursorInUseError);
  await started;
  const changes = [
    () => cursor.limit(1), () => cursor.skip(1), () => cursor.project({}), () => cursor.batchSize(1), () => cursor.hint("a"),
    () => cursor.collation({ locale: "en" }), () => cursor.filter({}), () => cursor.map((x) => x), () => cursor.comment(1),
  ];
  for (const change of changes) assert.throws(change, CursorInUseError);
});

test("rewind starts again, clone starts anew", async () => {
  const { engine, find } = await database(3);
  const cursor = find().batchSize(2);
  await cursor.next();
  await cursor.rewind();
  assert.equal(cursor.closed, false);
  assert.equal((await cursor.toArray()).length, 3);
  assert.equal((await cursor.clone().toArray()).length, 3);
  assert.equal(engine.cursors.size, 0);
});

test("map changes documents, twice in a row", async () => {
  const { find } = await database(3);
  const cursor = find().map((document) => document["n"] as number).map((n) => `#${n}`);
  assert.equal(await cursor.next(), "#0");
  assert.deepEqual(await cursor.toArray(), ["#1", "#2"]);
});

test("forEach stops at false", async () => {
  const { engine, find } = await database(5);
  const seen: unknown[] = [];
  await find().batchSize(2).forEach((document) => {
    seen.push(document["n"]);
    return document["n"] !== 2;
  });
  assert.deepEqual(seen, [0, 1, 2]);
  assert.equal(engine.cursors.size, 0);
});

test("every form of a sort is accepted", async () => {
  const { engine, db } = await database(1);
  const sorts: [Parameters<FindCursor["sort"]>, [string, number][]][] = [
    [["a"], [["a", 1]]],
    [["a", -1], [["a", -1]]],
    [[{ a: 1, b: "desc" }], [["a", 1], ["b", -1]]],
    [[["a", "b"]], [["a", 1], ["b", 1]]],
    [[["a", -1]], [["a", -1]]],
    [[[["b", 1], ["a", "descending"]]], [["b", 1], ["a", -1]]],
    [[new Map([["z", 1 as const], ["1", -1 as const]])], [["z", 1], ["1", -1]]],
  ];
  for (const [args, expected] of sorts) {
    engine.commands.length = 0;
    await db.collection("c").find().sort(...args).toArray();
    assert.deepEqual(engine.commands[0]!["sort"], Object.fromEntries(expected));
  }
  await assert.rejects(db.collection("c").find().sort({ a: 0 as 1 }).toArray(), TypeError);
});

test("arguments of the wrong type are a TypeError at once", async () => {
  const { find, db } = await database(1);
  assert.throws(() => find().limit("3" as unknown as number), TypeError);
  assert.throws(() => find().skip(1.5), TypeError);
  assert.throws(() => find().project(null as unknown as Document), TypeError);
  assert.throws(() => db.collection("c").find([] as unknown as Document), TypeError);
  assert.throws(() => find().map(1 as unknown as (x: unknown) => unknown), TypeError);
});

test("a negative limit is a limit and a single batch", async () => {
  const { engine, find } = await database(5);
  assert.equal((await find().limit(-2).toArray()).length, 2);
  assert.deepEqual([engine.commands[0]!["limit"], engine.commands[0]!["singleBatch"]], [2, true]);
});

test("a failure ends the cursor with its error", async () => {
  const { engine, find } = await database(5);
  const cursor = find().batchSize(2);
  await cursor.next();
  await cursor.next();
  engine.cursors.clear();
  await assert.rejects(cursor.next(), (error: unknown) => error instanceof ServerError && error.code === 43 && error.codeName === "CursorNotFound");
  assert.equal(cursor.closed, true);
  await assert.rejects(cursor.next(), CursorExhaustedError);
  await cursor.close();
  assert.deepEqual(names(engine), ["find", "getMore"]);
});

test("a cursor of a closed database rejects", async () => {
  const { db, find } = await database(5);
  const used = find().batchSize(2);
  await used.next();
  await used.next();
  await db.close();
  await assert.rejects(used.next(), ClosedError);
  await assert.rejects(find().toArray(), ClosedError);
  await used.close();
});

test("batches given as documents are read like blocks", async () => {
  const { engine, find } = await database(0);
  engine.intercept = (command) => ("find" in command ? { ok: 1, cursor: { id: 0, ns: "db.c", firstBatch: [{ n: 1.5 }, { n: 2 }] } } : undefined);
  assert.deepEqual(await find().toArray(), [{ n: 1.5 }, { n: 2 }]);
  assert.deepEqual((await find().toColumns())["n"], Float64Array.of(1.5, 2));
});

test("cursor ids beyond 2^53 are kept exactly", async () => {
  const { engine, find } = await database(0);
  const { Long } = await import("bson");
  const id = Long.fromBigInt(2n ** 62n + 1n);
  engine.intercept = (command) => ("find" in command ? { ok: 1, cursor: { id, ns: "db.c", firstBatch: [{ n: 1 }] } } : undefined);
  const cursor = find();
  await cursor.next();
  await cursor.close();
  assert.deepEqual(engine.commands[1]!["cursors"], [id]);
});

test("toColumns of an exhausted cursor returns no rows", async () => {
  const { find } = await database(3);
  const cursor = find();
  while (await cursor.next()) continue;
  assert.deepEqual(await cursor.toColumns(), {});
});

test("toColumns without rows has the fields of the projection or the group", async () => {
  const { db, find, engine } = await database(0);
  const c = db.collection("c");
  const none = new Float64Array();
  assert.deepEqual(await find().project({ _id: 0, at: 1, "a.b": 1, "a.c": true, twice: { $abs: "$n" } }).toColumns(), { at: none, a: none, twice: none });
  assert.deepEqual(await find().project({ at: 0, b: false }).toColumns(), {});
  assert.deepEqual(await c.find({}, { projection: { n: 1 } }).toColumns(), { n: none });
  engine.intercept = (command) => ("aggregate" in command ? { ok: 1, cursor: { id: 0n, ns: "db.c", firstBatch: [] }, rows: [] } : undefined);
  const group = { $group: { _id: "$s", mean: { $avg: "$n" } } };
  assert.deepEqual(await c.aggregate([group, { $sort: { _id: 1 } }, { $set: { more: 1 } }]).toColumns(), { _id: none, mean: none, more: none });
  assert.deepEqual(await c.aggregate([{ $project: { n: 1 } }, { $unwind: "$n" }]).toColumns(), {}, "what comes behind may change them");
  engine.intercept = () => undefined;
  engine.collections.set("c", [{ at: 1 }]);
  assert.deepEqual(await find().project({ at: 1, b: 1 }).toColumns(), { at: Float64Array.of(1) }, "of rows, a field that none has gets no column");
});

// bulkWrite, unsupported driver methods, and invalid arguments.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BulkWriteError, open, type AnyBulkWriteOperation, type Collection, type Database, type Document } from "timepail";
import { sqliteStorage } from "timepail/sqlite";

interface Reading {
  at: Date;
  station: string;
  n: number;
  _id?: number;
}

const at = (minute: number): Date => new Date(Date.UTC(2024, 0, 1, 0, minute));
const insert = (n: number, station = "a"): AnyBulkWriteOperation<Reading> => ({ insertOne: { document: { _id: n, at: at(n), station, n } } });

async function weather(): Promise<{ db: Database; c: Collection<Reading>; all: () => Promise<number[]> }> {
  const db = await open("bulk", { storage: "memory" });
  const c = await db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station" } });
  return { db, c, all: async () => (await c.find().sort({ at: 1 }).toArray()).map(({ n }) => n) };
}

test("the array of operations may be used for others at once", async () => {
  const { db, c, all } = await weather();
  const operations = [insert(1), insert(2)];
  const written = c.bulkWrite(operations);
  operations.length = 0;
  assert.equal((await written).insertedCount, 2);
  assert.deepEqual(await all(), [1, 2]);
  await db.close();
});

test("operations of all kinds run in their order", async () => {
  const { db, c, all } = await weather();
  const result = await c.bulkWrite([
    insert(1),
    insert(2),
    { deleteOne: { filter: { n: 1 } } },
    insert(3, "b"),
    { updateMany: { filter: { station: "b" }, update: { $set: { station: "c" } } } },
    { deleteMany: { filter: { station: "nowhere" } } },
    insert(4, "b"),
  ]);
  assert.deepEqual(result, {
    acknowledged: true, insertedCount: 4, matchedCount: 1, modifiedCount: 1, deletedCount: 1, upsertedCount: 0, upsertedIds: {}, insertedIds: { 0: 1, 1: 2, 3: 3, 6: 4 },
  });
  assert.deepEqual(await all(), [2, 3, 4]);
  assert.deepEqual((await c.distinct("station")).sort(), ["a", "b", "c"]);
  await db.close();
});

test("an ordered bulk stops at the first refused operation, and reports what was done", async () => {
  const { db, c, all } = await weather();
  const operations = [insert(1), insert(2), { updateMany: { filter: { n: 1 } as object, update: { $set: { station: "x" } } } }, { deleteMany: { filter: {} } }];
  await assert.rejects(c.bulkWrite(operations), (error: unknown) => {
    assert.ok(error instanceof BulkWriteError);
    assert.deepEqual([error.code, error.writeErrors.map(({ index, code }) => [index, code])], [72, [[2, 72]]]);
    assert.deepEqual([error.result.insertedCount, error.result.deletedCount, error.insertedCount, error.result.insertedIds], [2, 0, 2, { 0: 1, 1: 2 }]);
    return true;
  });
  assert.deepEqual(await all(), [1, 2]);
  const late = { insertOne: { document: { station: "a", n: 5 } as Reading } };
  await assert.rejects(c.bulkWrite([insert(3), late, insert(4)]), (error: unknown) => error instanceof BulkWriteError && error.writeErrors[0]!.index === 1);
  assert.deepEqual(await all(), [1, 2, 3]);
  await db.close();
});

test("an unordered bulk tries everything, and errors have the positions of their operations", async () => {
  const { db, c, all } = await weather();
  const wrong = { insertOne: { document: { station: "a", n: 9 } as Reading } };
  const refused = { updateOne: { filter: { station: "a" }, update: { $set: { station: "x" } } } } as unknown as AnyBulkWriteOperation<Reading>;
  await c.insertMany([{ at: at(0), station: "a", n: 0 }]);
  await assert.rejects(c.bulkWrite([wrong, insert(1), { deleteOne: { filter: { n: 0 } } }, wrong, refused, insert(2)], { ordered: false }), (error: unknown) => {
    assert.ok(error instanceof BulkWriteError);
    assert.deepEqual(error.writeErrors.map(({ index }) => index), [0, 3, 4]);
    assert.match(error.writeErrors[2]!.errmsg, /updateOne/);
    assert.deepEqual([error.result.insertedCount, error.result.deletedCount, error.result.insertedIds], [2, 1, { 1: 1, 5: 2 }]);
    return true;
  });
  assert.deepEqual(await all(), [1, 2]);
  await db.close();
});

test("a value that cannot be stored is an error of the bulk, or of its operation if others were done before", async () => {
  const { db, c, all } = await weather();
  const invalid = { insertOne: { document: { at: new Date(NaN), station: "a", n: 5 } } };
  await assert.rejects(c.bulkWrite([invalid]), { name: "BadValueError" });
  await assert.rejects(c.bulkWrite([insert(1), { deleteMany: { filter: { n: 7 } } }, invalid]), (error: unknown) => error instanceof BulkWriteError && error.writeErrors[0]!.index === 2);
  assert.deepEqual(await all(), [1]);
  await db.close();
});

test("invalid operations are refused before anything is sent", async () => {
  const { db, c, all } = await weather();
  for (const wrong of [[], {}, [null], [{ insertMany: [] }], [{ toString: {} }], [insert(1), { deleteMany: {} }], [insert(1), { deleteMany: { filter: {}, hints: "x" } }]]) {
    await assert.rejects(c.bulkWrite(wrong as never), TypeError, JSON.stringify(wrong));
  }
  await assert.rejects(c.bulkWrite([insert(1)], { order: false } as never), /did you mean "ordered"/);
  assert.deepEqual(await all(), []);
  await db.close();
});

test("unsupported driver methods say what to do instead", async () => {
  const { db, c } = await weather();
  const missing: [object, string, RegExp][] = [
    [c, "findOneAndUpdate", /There is no findOneAndUpdate\(\) here: .*updateMany\(\) changes metadata/],
    [c, "findOneAndReplace", /delete it and insert another/],
    [c, "replaceOne", /delete it and insert another/],
    [c, "rename", /\$out/],
    [c, "watch", /db\.on\("change", listener\)/],
    [db, "watch", /on\("change", listener\)/],
    [db, "renameCollection", /\$out/],
    [db, "aggregate", /db\.collection\(name\)\.aggregate/],
  ];
  for (const [object, name, message] of missing) assert.throws(() => (object as Document)[name]({}), { name: "TypeError", message });
  await assert.rejects(c.updateOne({ station: "a" }, { $set: { station: "b" } }), { code: 72, message: /updateOne.*updateMany changes metadata/ });
  await db.close();
});

test("a path in place of a storage is refused with a hint", async () => {
  await assert.rejects(open("plant", { storage: "plant.db" as "memory" }), /Unknown storage "plant\.db".*openFile\("plant\.db"\) of timepail\/file/);
  assert.throws(() => sqliteStorage("plant.db" as never), /an open database, such as new DatabaseSync\("plant\.db"\)/);
  assert.throws(() => sqliteStorage(undefined as never), TypeError);
});

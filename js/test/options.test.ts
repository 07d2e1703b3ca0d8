// Unknown options: refused by name with the nearest known one, before anything is sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWith, type Database } from "../src/database.ts";
import type { Collection } from "../src/collection.ts";
import type { OpenOptions } from "../src/types.ts";
import { FakeEngine } from "./fake-engine.ts";

async function weather(): Promise<{ engine: FakeEngine; db: Database; c: Collection<any> }> {
  const engine = new FakeEngine();
  const db = await openWith(async () => engine, "plant", { storage: "memory" });
  return { engine, db, c: db.collection("weather") };
}

test("an unknown option is refused by name in every method", async () => {
  const { engine, db, c } = await weather();
  const rows = [{ at: new Date() }];
  const calls: [() => unknown, RegExp][] = [
    [() => c.find({}, { projecton: { a: 1 } } as never), /Unknown option "projecton"; did you mean "projection"\?/],
    [() => c.findOne({}, { sorted: 1 } as never), /"sorted"; did you mean "sort"\?/],
    [() => c.aggregate([], { batchsize: 1 } as never), /"batchsize"; did you mean "batchSize"\?/],
    [() => c.insertOne(rows[0], { order: false } as never), /"order"; did you mean "ordered"\?/],
    [() => c.insertMany(rows, { unordered: true } as never), /"unordered"; did you mean "ordered"\?/],
    [() => c.insertMany(rows, { meta: 7 } as never), /Unknown option "meta"; known are ordered, bypassDocumentValidation, comment/],
    [() => c.insertColumns({ at: [1] }, { metadata: 7 } as never), /"metadata"; did you mean "meta"\?/],
    [() => c.deleteMany({}, { hints: "a" } as never), /"hints"; did you mean "hint"\?/],
    [() => c.deleteOne({}, { upsert: true } as never), /Unknown option "upsert"; known are collation, hint, ordered, let, comment/],
    [() => c.updateMany({}, { $set: { m: 1 } }, { arrayFilter: [] } as never), /"arrayFilter"; did you mean "arrayFilters"\?/],
    [() => c.findOneAndDelete({}, { porjection: {} } as never), /"porjection"; did you mean "projection"\?/],
    [() => c.countDocuments({}, { limt: 1 } as never), /"limt"; did you mean "limit"\?/],
    [() => c.distinct("a", {}, { colation: {} } as never), /"colation"; did you mean "collation"\?/],
    [() => c.find().toColumns({ bye: "a" } as never), /Unknown option "bye"; did you mean "by"\?/],
    [() => c.drop({ session: {} } as never), /Unknown option "session"; known are comment/],
    [() => db.collection("c", { generateids: true } as never), /"generateids"; did you mean "generateIds"\?/],
    [() => db.command({ ping: 1 }, { promoteLong: false } as never), /"promoteLong"; did you mean "promoteLongs"\?/],
    [() => db.listCollections({}, { namesOnly: true } as never), /"namesOnly"; did you mean "nameOnly"\?/],
    [() => openWith(async () => engine, "a", { storege: "memory" } as OpenOptions), /"storege"; did you mean "storage"\?/],
    [() => openWith(async () => engine, "a", { toString: 1 } as OpenOptions), /Unknown option "toString"/],
  ];
  for (const [call, message] of calls) await assert.rejects(async () => call(), { name: "TypeError", message });
  assert.deepEqual(engine.commands, []);
});

test("an unknown option with the value undefined is refused as well", async () => {
  const { c } = await weather();
  await c.insertMany([{ at: new Date() }], { ordered: undefined } as never);
  await assert.rejects(c.insertMany([{ at: new Date() }], { orderly: undefined } as never), TypeError);
});

test("metadata with one element per row is refused with a hint to pass it as a column", async () => {
  const { engine, c } = await weather();
  await assert.rejects(c.insertColumns({ at: [1, 2] }, { meta: ["a", "b"] }), { name: "TypeError", message: /has one a row: give it as a column, under the name of the metaField/ });
  assert.deepEqual(engine.commands, []);
  await c.insertColumns({ at: [1, 2] }, { meta: ["a", "b", "c"] });
  assert.deepEqual(engine.commands[0]!["meta"], ["a", "b", "c"]);
});

test("a limit, a skip and a batch size must be integers, as an option and as a method", async () => {
  const { engine, db, c } = await weather();
  for (const bad of ["5", NaN, 1.5, {}]) {
    for (const name of ["limit", "skip", "batchSize"]) {
      const refused = { name: "TypeError", message: `${name} must be an integer, not ${bad === "5" ? '"5"' : String(bad)}` };
      await assert.rejects(async () => c.find({}, { [name]: bad }).next(), refused);
      assert.throws(() => (c.find() as any)[name](bad), refused);
      if (name === "batchSize") assert.throws(() => c.aggregate([]).batchSize(bad as never), refused);
      if (name !== "batchSize") await assert.rejects(async () => c.countDocuments({}, { [name]: bad }), refused);
      else await assert.rejects(async () => c.aggregate([], { [name]: bad } as never).next(), refused);
    }
  }
  assert.deepEqual(engine.commands, []);
  await c.find({}, { limit: undefined, skip: null } as never).next();
  // The driver does not check a command. The engine treats it as a server would.
  await db.command({ find: "weather", limit: NaN });
  assert.deepEqual(engine.commands.map((command) => command["limit"]), [undefined, NaN]);
});

test("metadata of null is metadata", async () => {
  const { engine, c } = await weather();
  await c.insertColumns({ at: [1] }, { meta: null });
  assert.equal(engine.commands[0]!["meta"], null);
});

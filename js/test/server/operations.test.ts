// Commands that take long: they are listed, they can be killed, and they end when no client waits for them any more.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { MongoClient, node, places, served, type Served } from "./harness.ts";

const timeseries = { timeField: "at", metaField: "station" };
/** Matches no measurement, and takes a millisecond to evaluate for each. */
const SLOW = { $expr: { $lt: [{ $strLenCP: { $reduce: { input: { $range: [0, 300] }, initialValue: "", in: { $concat: ["$$value", { $toString: "$n" }] } } } }, 0] } };
const FOREVER = [{ $match: SLOW }];

let server: Served;
let client: any;
const code = (expected: number) => (error: { code?: unknown }) => (assert.equal(error.code, expected, String(error)), true);

before(async () => {
  server = await served("operations.db");
  client = new MongoClient(server.uri, { appName: "operations" });
  const c = await client.db("operations").createCollection("c", { timeseries });
  for (let from = 0; from < 20_000; from += 10_000) await c.insertMany(Array.from({ length: 10_000 }, (_, i) => ({ at: new Date((from + i) * 1000), station: i % 1000, n: from + i })), { forceServerObjectId: true });
});

after(() => client.close());

const admin = (): any => client.db("admin");
const endless = (options = {}): Promise<unknown> => client.db("operations").collection("c").aggregate(FOREVER, options).toArray();
const running = (match: Record<string, unknown>): Promise<any[]> => admin().aggregate([{ $currentOp: { allUsers: true } }, { $match: match }]).toArray();

/** Resolves to the matching command as soon as it runs. */
async function seen(match: Record<string, unknown>): Promise<any> {
  for (;;) {
    const [operation] = await running(match);
    if (operation) return operation;
  }
}

/** Resolves when no such command runs any more. */
async function gone(match: Record<string, unknown>): Promise<void> {
  while ((await running(match)).length > 0);
}

test("a command is shown, and killOp ends it", async () => {
  const ended = assert.rejects(endless(), code(11_601));
  const { opid, type, op, ns, command, active, appName, secs_running: seconds, client: from } = await seen({ "command.aggregate": "c" });
  assert.deepEqual({ type, op, ns, active, appName }, { type: "op", op: "command", ns: "operations.c", active: true, appName: "operations" });
  assert.deepEqual([command.aggregate, command.pipeline.length, command.$db, typeof seconds], ["c", 1, "operations", "number"]);
  assert.match(from, /^127\.0\.0\.1:\d+$/);
  const { inprog } = await admin().command({ currentOp: 1, opid });
  assert.deepEqual(inprog.map((each: any) => each.opid), [opid]);
  assert.deepEqual(await admin().command({ killOp: 1, op: opid }), { info: "attempting to kill op", ok: 1 });
  await ended;
  assert.deepEqual((await admin().command({ currentOp: 1, opid })).inprog, []);
  // The operation no longer exists, but `killOp` succeeds.
  assert.equal((await admin().command({ killOp: 1, op: opid })).ok, 1);
});

test("killOp ends one command, and the others go on", async () => {
  const one = assert.rejects(endless({ comment: "one" }), code(11_601));
  const other = assert.rejects(endless({ comment: "other" }), code(11_601));
  const [first, second] = [await seen({ "command.comment": "one" }), await seen({ "command.comment": "other" })];
  await admin().command({ killOp: 1, op: first.opid });
  await one;
  assert.equal((await running({ opid: second.opid })).length, 1);
  await admin().command({ killOp: 1, op: second.opid });
  await other;
});

test("a getMore ends by killOp, too", async () => {
  // The first batch is empty, and the second takes very long.
  const db = client.db("operations");
  const { cursor } = await db.command({ aggregate: "c", pipeline: FOREVER, cursor: { batchSize: 0 } });
  const ended = assert.rejects(db.command({ getMore: cursor.id, collection: "c" }), code(11_601));
  const { opid, ns } = await seen({ op: "getmore" });
  assert.equal(ns, "operations.c");
  await admin().command({ killOp: 1, op: opid });
  await ended;
});

test("killSessions ends the commands of a session", async () => {
  const session = client.startSession();
  const ended = assert.rejects(endless({ session }), code(11_601));
  await seen({ "command.aggregate": "c" });
  await admin().command({ killSessions: [session.id] });
  await ended;
  await session.endSession();
});

test("maxTimeMS ends commands of every kind", async () => {
  const c = client.db("operations").collection("c");
  await assert.rejects(endless({ maxTimeMS: 50 }), code(50));
  for (const work of [
    () => c.find(SLOW, { maxTimeMS: 20 }).toArray(),
    () => c.countDocuments(SLOW, { maxTimeMS: 20 }),
    () => c.distinct("n", SLOW, { maxTimeMS: 20 }),
    () => c.find(SLOW).explain({ verbosity: "executionStats", maxTimeMS: 20 }),
    () => c.deleteMany(SLOW, { maxTimeMS: 20 }),
    // The time limit of a cursor applies to all its batches together.
    () => c.find(SLOW, { batchSize: 10, maxTimeMS: 300 }).toArray(),
  ]) await assert.rejects(work(), code(50), String(work));
  await assert.rejects(c.find({}, { maxTimeMS: -1 }).toArray(), code(2));
  assert.equal(await c.countDocuments({}, { maxTimeMS: 60_000 }), 20_000);
});

test("what a client has asked ends when the client is killed, and its writes do not", async () => {
  const program = `
    const { MongoClient } = require(${JSON.stringify(places.mongodb)});
    const c = new MongoClient(${JSON.stringify(server.uri)}).db("operations").collection("c");
    c.aggregate(${JSON.stringify(FOREVER)}, { comment: "orphan" }).toArray();
  `;
  const child = spawn(node, ["-e", program], { stdio: "ignore" });
  await seen({ "command.comment": "orphan" });
  child.kill("SIGKILL");
  await gone({ "command.comment": "orphan" });
});

test("what is wrong with killOp and currentOp is told", async () => {
  await assert.rejects(admin().command({ killOp: 1 }), code(4));
  await assert.rejects(admin().command({ killOp: 1, op: "x" }), code(14));
  await assert.rejects(admin().command({ killOp: 1, op: 1.5 }), code(2));
  await assert.rejects(client.db("operations").command({ killOp: 1, op: 1 }), code(13));
  await assert.rejects(admin().aggregate([{ $currentOp: { all: true } }]).toArray(), code(9));
  await assert.rejects(admin().aggregate([{ $currentOp: { allUsers: 1 } }]).toArray(), code(9));
  await assert.rejects(client.db("operations").aggregate([{ $currentOp: {} }]).toArray(), code(73));
  // Only the server numbers commands, so a client cannot set `opKey`.
  await assert.rejects(client.db("operations").command({ count: "c", opKey: 1 }), code(40_415));
  const idle = await admin().command({ currentOp: 1, $all: true });
  assert.ok(idle.inprog.some(({ active }: any) => !active) && idle.inprog.some(({ active }: any) => active));
});

// The official driver for Node against `timepail serve`, and the same file opened without a server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CERTIFICATE, Decimal128, Long, MongoBulkWriteError, MongoClient, ObjectId, as, file, node, served, timepail } from "./harness.ts";

const START = Date.UTC(2025, 5, 1);
const rows = (count: number, from = 0): any[] => Array.from({ length: count }, (_, i) => ({ at: new Date(START + (from + i) * 1000), station: (from + i) % 5, temp: (from + i) / 4, n: from + i }));
const timeseries = { timeField: "at", metaField: "station" };
const code = (expected: number) => (error: { code?: unknown }) => (assert.equal(error.code, expected, String(error)), true);

/** Runs a test with a client. */
async function withClient(uri: string, work: (client: any) => Promise<void>, options = {}): Promise<void> {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5000, ...options });
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

test("the driver writes and reads as with a server", async (t) => {
  const server = await served("plant.db");
  await withClient(server.uri, async (client) => {
    const db = client.db("plant");
    const fresh = async (name: string): Promise<any> => db.createCollection(name, { timeseries });

    await t.test("every method of reading and writing that time series have", async () => {
      const c = await fresh("crud");
      const one = { _id: new ObjectId(), at: new Date(START), station: { id: 1 }, long: Long.fromString("9007199254740993"), decimal: Decimal128.fromString("1.10"), text: "ä", list: [1, { a: null }] };
      assert.deepEqual((await c.insertOne(one)).insertedId, one._id);
      assert.deepEqual(await c.findOne({}, { promoteLongs: false }), one);
      assert.equal((await c.deleteMany({})).deletedCount, 1);
      assert.equal((await c.insertMany(rows(2000))).insertedCount, 2000);
      assert.deepEqual([await c.countDocuments({ station: 2 }), await c.estimatedDocumentCount()], [400, 2000]);
      assert.deepEqual((await c.distinct("station")).sort(), [0, 1, 2, 3, 4]);
      assert.equal((await c.updateMany({ station: 4 }, { $set: { station: 40 } })).modifiedCount, 400);
      assert.equal((await c.findOneAndDelete({ n: 7 })).n, 7);
      assert.equal((await c.deleteOne({ n: 8 })).deletedCount, 1);
      await assert.rejects(c.updateOne({ n: 1 }, { $set: { temp: 1 } }), code(72));
      await assert.rejects(c.replaceOne({ n: 1 }, { a: 1 }), code(72));
      assert.equal(await c.drop(), true);
    });

    await t.test("bulk writes and their errors", async () => {
      const c = await fresh("bulk");
      const result = await c.bulkWrite([...rows(10).map((document) => ({ insertOne: { document } })), { deleteMany: { filter: { station: 1 } } }, { updateMany: { filter: { station: 2 }, update: { $set: { station: 20 } } } }]);
      assert.deepEqual([result.insertedCount, result.deletedCount, result.modifiedCount], [10, 2, 2]);
      await assert.rejects(c.insertMany([...rows(2), { at: 1 }, ...rows(2)], { ordered: false }), (error: any) => {
        assert.ok(error instanceof MongoBulkWriteError);
        assert.deepEqual([error.code, error.insertedCount, error.writeErrors[0].index], [2, 4, 2]);
        return true;
      });
    });

    await t.test("cursors over many batches, also after a rest", async () => {
      const c = await fresh("batches");
      await c.insertMany(rows(1000));
      const found: number[] = [];
      for await (const { n } of c.find().sort({ at: 1 }).batchSize(9)) found.push(n);
      assert.deepEqual(found, Array.from({ length: 1000 }, (_, i) => i));
      const cursor = c.find().batchSize(10);
      await cursor.next();
      await cursor.close();
      const many = await Promise.all(Array.from({ length: 20 }, () => c.aggregate([{ $match: { station: 1 } }], { batchSize: 7 }).toArray()));
      assert.ok(many.every((all: any[]) => all.length === 200));
    });

    await t.test("indexes, explain, collMod and sizes", async () => {
      const c = await fresh("indexes");
      await c.insertMany(rows(100));
      assert.equal(await c.createIndex({ station: 1, temp: -1 }), "station_1_temp_-1");
      assert.deepEqual((await c.indexes()).map(({ name }: any) => name).sort(), ["station_1_at_1", "station_1_temp_-1"]);
      for (const verbosity of ["queryPlanner", "executionStats", "allPlansExecution"]) assert.equal((await c.find({ station: 1 }).explain(verbosity)).ok, 1);
      assert.equal((await c.aggregate([{ $group: { _id: "$station" } }]).explain()).ok, 1);
      await c.dropIndex("station_1_temp_-1");
      await db.command({ collMod: "indexes", expireAfterSeconds: 1e9 });
      assert.equal((await db.listCollections({ name: "indexes" }).next()).options.expireAfterSeconds, 1e9);
      assert.equal((await c.aggregate([{ $collStats: { count: {} } }]).next()).count, 100);
      assert.ok((await db.stats()).collections > 0);
    });

    await t.test("a session that ends takes its cursors along", async () => {
      const c = await fresh("ended");
      await c.insertMany(rows(100));
      const open = async (): Promise<number> => Number((await db.command({ serverStatus: 1 })).metrics.cursor.open.total);
      const before = await open();
      const session = client.startSession();
      const finds = Array.from({ length: 5 }, () => c.find({}, { session, batchSize: 10 }));
      for (const find of finds) await find.next();
      assert.equal(await open(), before + 5);
      assert.equal((await finds[0].toArray()).length, 99);
      await finds[1].close();
      await finds[2].next();
      assert.equal(await open(), before + 3);
      await client.db("admin").command({ endSessions: [session.id] });
      assert.equal(await open(), before);
      await assert.rejects(finds[3].toArray(), code(43));
      await session.endSession();
    });

    await t.test("sessions, and transactions as a server has them that stands alone", async () => {
      const c = await fresh("sessions");
      await client.withSession(async (session: any) => {
        await c.insertMany(rows(5), { session });
        session.startTransaction();
        // The driver's message for the server's error 20.
        await assert.rejects(c.insertOne({ at: new Date(0) }, { session }), /does not support retryable writes/);
        await session.abortTransaction();
      });
      assert.equal(await c.countDocuments({}, { readPreference: "secondary", readConcern: { level: "majority" } }), 5);
    });

    await t.test("errors with their codes", async () => {
      await assert.rejects(db.createCollection("plain"), code(72));
      await assert.rejects(db.collection("absent").insertOne({ a: 1 }), code(26));
      await assert.rejects(db.command({ fly: 1 }), code(59));
      await assert.rejects(db.collection("crud").find({ $fly: 1 }).toArray(), code(2));
      await assert.rejects(client.db("admin").command({ replSetGetStatus: 1 }), code(76));
      assert.deepEqual(await db.collection("absent").find().toArray(), []);
      assert.deepEqual(await client.db("config").collection("system.views").find().toArray(), []);
      assert.deepEqual(await client.db("local").listCollections().toArray(), []);
    });

    await t.test("what Compass asks before its first screen", async () => {
      const admin = client.db("admin");
      const asked: Record<string, unknown>[] = [
        { connectionStatus: 1, showPrivileges: true }, { hostInfo: 1 }, { buildInfo: 1 }, { getParameter: 1, featureCompatibilityVersion: 1 }, { getCmdLineOpts: 1 }, { top: 1 }, { serverStatus: 1 },
        { listDatabases: 1, nameOnly: true }, { currentOp: 1, $all: true },
      ];
      for (const command of asked) assert.equal((await admin.command(command)).ok, 1, JSON.stringify(command));
      await assert.rejects(admin.command({ atlasVersion: 1 }), code(59));
      assert.ok((await admin.aggregate([{ $currentOp: { allUsers: true } }, { $match: { active: true } }]).toArray()).length > 0);
      for (const name of ["indexes", "system.buckets.indexes"]) {
        assert.equal((await db.collection(name).aggregate([{ $collStats: { storageStats: {} } }]).toArray()).length, 1);
        assert.ok((await db.collection(name).aggregate([{ $sample: { size: 10 } }]).toArray()).length > 0);
        assert.ok((await db.collection(name).aggregate([{ $indexStats: {} }]).toArray()).length > 0);
      }
      assert.equal((await db.command({ dbStats: 1 })).ok, 1);
    });

    await t.test("databases beside each other", async () => {
      const c = await client.db("second").createCollection("crud", { timeseries });
      await c.insertMany(rows(3));
      const names = async (): Promise<string[]> => (await client.db().admin().listDatabases({ nameOnly: true })).databases.map(({ name }: any) => name);
      assert.deepEqual(await names(), ["plant", "second"]);
      assert.equal((await db.listCollections({ name: "crud" }).toArray()).length, 0);
      await client.db("second").dropDatabase();
      assert.deepEqual(await names(), ["plant"]);
    });

    await t.test("fifty clients at once", async () => {
      await fresh("crowd");
      await Promise.all(
        Array.from({ length: 50 }, (_, number) =>
          withClient(server.uri, async (own) => {
            const c = own.db("plant").collection("crowd");
            for (let turn = 0; turn < 4; turn++) await c.insertMany(rows(25, turn * 25).map((row) => ({ ...row, station: number })));
            assert.equal(await c.countDocuments({ station: number }), 100);
          }, { compressors: number % 2 ? ["zlib"] : [] }),
        ),
      );
      assert.equal(await db.collection("crowd").countDocuments(), 5000);
    });
  });
  assert.equal(await server.end("SIGINT"), 0);
});

test("what a server has stored, openFile reads, and the other way round", async () => {
  const server = await served("shared.db");
  await withClient(server.uri, async (client) => {
    const c = await client.db("shared").createCollection("c", { timeseries });
    await c.insertMany(rows(50));
    await (await client.db("other").createCollection("c", { timeseries })).insertMany(rows(7));
    const own = `
      import { openFile } from "timepail/file";
      await using db = await openFile(${JSON.stringify(file("shared.db"))});
      await db.collection("c").insertMany([{ at: new Date(0), n: 1000 }]);
      console.log(await db.collection("c").countDocuments());
    `;
    const { spawnSync } = await import("node:child_process");
    assert.equal(spawnSync(node, ["--no-warnings", "--input-type=module", "-e", own], { encoding: "utf8", cwd: process.cwd() }).stdout, "51\n");
    assert.equal(await c.countDocuments({ n: 1000 }), 1);
  });
  await server.end();
  const { code: status, out } = timepail(["stats", file("shared.db"), "--json"]);
  assert.deepEqual([status, JSON.parse(out).measurements], [0, 51]);
  const asked = timepail(["query", file("shared.db"), "c", '[{ "$match": { "n": { "$lt": 3 } } }, { "$project": { "_id": 0, "n": 1 } }]', "--sort", '{ "n": -1 }', "--limit", "2"]);
  assert.deepEqual([asked.code, asked.out], [0, '{"n":2}\n{"n":1}\n']);
});

test("users are made, get in, and are removed", async () => {
  const path = file("auth.db");
  assert.equal(timepail(["user", path, "ada"], "first\n").code, 0);
  assert.equal(timepail(["user", path, "ada"], "secret, =\n").code, 0);
  assert.equal(timepail(["user", path, "bob"], "bob\n").code, 0);
  assert.equal(timepail(["user", path, "--list"]).out, "ada\nbob\n");
  assert.equal(timepail(["user", path, "bob", "--remove"]).code, 0);
  assert.match(timepail(["user", path, "bob", "--remove"]).err, /Unknown user bob/);
  assert.equal(timepail(["user", path, "eve"], "\n").code, 2);
  const server = await served("auth.db", "--auth", "--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE);
  const tls = { tls: true, tlsCAFile: CERTIFICATE };
  const uri = server.uri.replace("127.0.0.1", "localhost");
  await withClient(as(uri, "ada", "secret, ="), async (client) => assert.equal((await client.db("x").command({ connectionStatus: 1 })).authInfo.authenticatedUsers[0].user, "ada"), tls);
  for (const [name, password] of [["ada", "first"], ["bob", "bob"], ["eve", ""]] as const) {
    await assert.rejects(withClient(as(uri, name, password || "x"), (client) => client.db("x").command({ ping: 1 }), tls), code(18));
  }
  await assert.rejects(withClient(uri, (client) => client.db("x").command({ listCollections: 1 }), tls), code(13));
  await assert.rejects(withClient(uri, (client) => client.db("x").command({ ping: 1 }), { tls: true, serverSelectionTimeoutMS: 1500 }), /certificate|self-signed/);
  assert.equal(await server.end(), 0);
});

test("with an authority, only clients with a certificate of it come in", async () => {
  const server = await served("ca.db", "--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE, "--tls-ca", CERTIFICATE);
  const uri = server.uri.replace("127.0.0.1", "localhost");
  const ping = (options: object): Promise<void> => withClient(uri, (client) => client.db("x").command({ ping: 1 }), { tls: true, tlsCAFile: CERTIFICATE, serverSelectionTimeoutMS: 1500, ...options });
  await ping({ tlsCertificateKeyFile: CERTIFICATE, serverSelectionTimeoutMS: 5000 });
  await assert.rejects(ping({}), /certificate required|ECONNRESET|closed/);
  await server.end();
});

test("a server for users tells if there are none", async () => {
  const server = await served("empty.db", "--auth");
  // The warning is printed before the address, on another stream.
  while (server.said() === "") await new Promise(setImmediate);
  assert.match(server.said(), /Nobody can connect yet: .*empty\.db has no users/);
  await server.end();
});

test("the command line says what is wrong", () => {
  const said = (...args: string[]): [number | null, string] => {
    const { code: status, err } = timepail(args);
    return [status, err];
  };
  for (const [pattern, status, ...args] of [
    [/Unknown command fly/, 2, "fly"],
    [/Missing argument: file/, 2, "serve"],
    [/--port must be a number/, 2, "serve", file("x.db"), "--port", "many"],
    [/other machines can reach it/, 1, "serve", file("x.db"), "--host", "0.0.0.0"],
    [/must be used together/, 2, "serve", file("x.db"), "--tls-cert", CERTIFICATE],
    [/Unknown option '--fly'/, 2, "serve", file("x.db"), "--fly"],
    [/There is no file/, 1, "stats", file("absent.db")],
    [/is not JSON/, 2, "query", file("shared.db"), "c", "{"],
  ] as [RegExp, number, ...string[]][]) {
    const [found, text] = said(...args);
    assert.equal(found, status, args.join(" "));
    assert.match(text, pattern);
  }
  for (const command of ["serve", "user", "stats", "query"]) assert.match(timepail([command, "--help"]).out, new RegExp(`^Usage: timepail ${command} `));
  assert.match(timepail(["--help"]).out, /timepail serve/);
});

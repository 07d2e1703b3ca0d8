// A server that is killed while clients write: acknowledged writes survive.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MongoClient, served } from "./harness.ts";

const WRITERS = 6;
const KILLS = 3;
/** The number of inserts, acknowledged to all writers together, before each kill. */
const BEFORE_KILL = 60;

test("a kill under load loses nothing that was acknowledged", async () => {
  const acknowledged = new Set<number>();
  let next = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const server = await served("crash.db");
    const client = new MongoClient(server.uri, { serverSelectionTimeoutMS: 3000, retryWrites: false });
    const db = client.db("crash");
    if (kill === 0) await db.createCollection("c", { timeseries: { timeField: "at", metaField: "writer" } });
    const c = db.collection("c");
    const target = acknowledged.size + BEFORE_KILL * 10;
    let isKilled = false;
    const write = async (writer: number): Promise<void> => {
      while (!isKilled) {
        const from = next;
        next += 10;
        const rows = Array.from({ length: 10 }, (_, i) => ({ at: new Date(1e12 + from + i), writer, n: from + i }));
        try {
          await c.insertMany(rows);
          rows.forEach(({ n }) => acknowledged.add(n));
        } catch (error) {
          assert.ok(isKilled, String(error));
        }
        if (acknowledged.size >= target && !isKilled) {
          isKilled = true;
          await server.end("SIGKILL");
        }
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
    await client.close(true);
  }
  const server = await served("crash.db");
  const client = new MongoClient(server.uri);
  const found = await client.db("crash").collection("c").find({}, { projection: { n: 1 } }).toArray();
  const numbers = new Set(found.map(({ n }: { n: number }) => n));
  assert.equal(numbers.size, found.length, "none is there twice");
  assert.deepEqual([...acknowledged].filter((n) => !numbers.has(n)), []);
  assert.ok(acknowledged.size >= KILLS * BEFORE_KILL * 10);
  assert.equal((await client.db("crash").command({ validate: "c", full: true })).valid, true);
  await client.close();
  assert.equal(await server.end(), 0);
});

// The slim entry, which guesses no address and loads what it is given. A separate process, because the first database decides what the process loads.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { LoadError, open } from "timepail/slim";

const bytes = async (name: string): Promise<Uint8Array<ArrayBuffer>> => Uint8Array.from(await readFile(`dist/${name}`));

test("slim opens with the given module, loads the second half on demand, and reports errors", async () => {
  await assert.rejects(open("plant", { wasm: undefined as never, wasmMore: undefined as never }), (error: unknown) => error instanceof LoadError && /wasm/.test(error.message));
  await assert.rejects(open("plant", { wasm: new Response("<html>"), wasmMore: "" }), LoadError);
  let asked = 0;
  const wasmMore = async (): Promise<Uint8Array<ArrayBuffer>> => (asked++, bytes("timepail-more.wasm"));
  const db = await open("plant", { wasm: bytes("timepail.wasm"), wasmMore });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertOne({ at: new Date(0), v: 1 });
  assert.equal(await c.countDocuments(), 1);
  assert.equal(asked, 0);
  assert.deepEqual(await c.aggregate([{ $group: { _id: null, v: { $sum: "$v" } } }]).toArray(), [{ _id: null, v: 1 }]);
  assert.equal(asked, 1);
  await db.close();
});

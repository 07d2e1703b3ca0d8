// Live queries of the built package: loading `later.js`, and `Symbol.observable`, which is defined here before the package is loaded.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const observable = Symbol("observable");
Object.defineProperty(Symbol, "observable", { value: observable });

test("Symbol.observable gives the live query, and RxJS asks for it", async () => {
  const { open } = await import("timepail");
  const { firstValueFrom, from } = await import("rxjs");
  const db = await open("plant", { storage: "memory" });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertOne({ at: new Date(0), v: 1 });
  const live = c.find({}, { projection: { _id: 0, v: 1 } }).live();
  assert.equal((live as unknown as Record<symbol, () => unknown>)[observable]!(), live);
  // Without the method, RxJS would iterate.
  Object.defineProperty(live, Symbol.asyncIterator, { value: undefined });
  assert.deepEqual(await firstValueFrom(from(live)), [{ v: 1 }]);
  await db.close();
});

test("without the file that is loaded later, a subscription, a bulkWrite and toColumns fail with the reason, and those that come when it is there work", async () => {
  const folder = join(process.cwd(), ".test-build/missing");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["node.js", "timepail.wasm", "timepail-more.wasm"]) cpSync(join("dist", name), join(folder, name));
  const { open } = (await import(join(folder, "node.js"))) as typeof import("timepail");
  const db = await open("plant", { storage: "memory" });
  const live = db.collection("c").find().live();
  const failure = await new Promise((_, reject) => live.subscribe(() => {}, reject)).catch((error: unknown) => error);
  assert.match(String(failure), /Cannot find module .*later\.js/);
  await assert.rejects(live[Symbol.asyncIterator]().next(), /Cannot find module/);
  const operations = [{ insertOne: { document: { at: new Date(0) } } }];
  await assert.rejects(db.collection("c").bulkWrite(operations), /Cannot find module/);
  await assert.rejects(db.collection("c").find().toColumns(), /Cannot find module/);
  copyFileSync("dist/later.js", join(folder, "later.js"));
  await new Promise<void>((resolve) => live.subscribe(() => resolve()));
  assert.deepEqual(live.current, []);
  await db.createCollection("c", { timeseries: { timeField: "at" } });
  assert.equal((await db.collection("c").bulkWrite(operations)).insertedCount, 1);
  await db.close();
});

test("without the modules and the file that is loaded later, the error names both", async () => {
  const folder = join(process.cwd(), ".test-build/alone");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyFileSync("dist/index.js", join(folder, "index.js"));
  const { LoadError, open } = (await import(join(folder, "index.js"))) as typeof import("timepail");
  const isTold = (error: unknown): boolean => error instanceof LoadError && /nor later\.js.*serve the files of the package beside each other/.test(error.message);
  await assert.rejects(open("plant", { storage: "memory", wasm: Uint8Array.of(1) }), isTold);
});

// A live query where `Symbol.observable` is defined before the package is loaded. A process of its own, because that happens once.

import assert from "node:assert/strict";
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

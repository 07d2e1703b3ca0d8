// Databases in storages of the host: how failures are reported, and that they lose nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, ServerError, type Database, type HostStorage, type StorageChange } from "timepail";
import { MemoryStorage, storageContract } from "timepail/testing";
import { after, before, counted, writer } from "./runtimes/end-to-end.ts";

const START = Date.UTC(2024, 0, 1);

const row = (minute: number, v = minute): { at: Date; m: string; v: number } => ({ at: new Date(START + minute * 60_000), m: "a", v });

async function opened(storage: HostStorage): Promise<Database> {
  const db = await open("plant", { storage });
  await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
  return db;
}

const refused = (codeName: string, pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ServerError, String(error));
  assert.equal(error.codeName, codeName);
  assert.match(error.message, pattern);
  return true;
};

for (const { name, check } of storageContract) {
  test(`in memory: ${name}`, async () => {
    const storage = new MemoryStorage();
    await check(storage, storage);
  });
}

test("the contract finds a storage that breaks a rule", async () => {
  const broken: [string, (storage: MemoryStorage) => HostStorage][] = [
    ["an insert of a present key fails the whole commit", (storage) => ({ ...methods(storage), commit: (changes) => (storage.commit(changes.filter(([kind]) => kind !== "insert")), true) })],
    ["a page ends at its count wherever ranges meet", (storage) => ({ ...methods(storage), scan: (ranges, page) => ranges.flatMap((range) => storage.scan([range], page)) })],
    ["large values come back whole, and are replaced and removed whole", (storage) => ({ ...methods(storage), getMany: (keys) => storage.getMany(keys).map((value) => value?.subarray(0, 65_536)) })],
  ];
  for (const [name, make] of broken) {
    const storage = make(new MemoryStorage());
    await assert.rejects(storageContract.find((rule) => rule.name === name)!.check(storage, storage), / instead of /, name);
  }
});

test("a database works in a host storage, over a crash and with several contexts", async () => {
  let storage = new MemoryStorage();
  const make = async (): Promise<HostStorage> => storage;
  for (const step of before) await step.run(make);
  // The state after the crash; the earlier contexts continue on a copy.
  storage = storage.copy();
  for (const step of after) await step.run(make);
  await Promise.all([0, 1, 2].map((number) => writer(number).run(make)));
  await counted(3).run(make);
});

test("a storage may return promises", async () => {
  const storage = new MemoryStorage();
  const later = async <T>(value: T): Promise<T> => value;
  const db = await opened({
    getMany: (keys) => later(storage.getMany(keys)),
    scan: (ranges, page) => later(storage.scan(ranges, page)),
    commit: (changes) => later(storage.commit(changes)),
  });
  await db.collection("c").insertOne(row(1));
  assert.equal(await db.collection("c").countDocuments(), 1);
  await db.close();
  assert.equal(await (await open("plant", { storage })).collection("c").countDocuments(), 1);
});

test("the error of a storage reaches the caller, and the database stays usable", async () => {
  const storage = new MemoryStorage();
  const db = await opened(storage);
  const c = db.collection("c");
  storage.fail("commit", { times: 2, error: new Error("The cable is out.") });
  await assert.rejects(c.insertOne(row(1)), refused("OperationFailed", /^The storage answered Error: The cable is out$/));
  storage.fail("commit", { times: 2, error: new DOMException("full", "QuotaExceededError") });
  await assert.rejects(c.insertOne(row(2)), refused("OutOfDiskSpace", /QuotaExceededError: full/));
  storage.fail("scan", { error: new RangeError("no") });
  await assert.rejects((await open("plant", { storage })).collection("c").find().toArray(), refused("OperationFailed", /RangeError: no/));
  storage.fail("getMany", { error: "a text" as unknown as Error });
  await assert.rejects((await open("plant", { storage })).collection("c").find().toArray(), refused("OperationFailed", /a text/));
  await c.insertOne(row(3));
  assert.deepEqual((await c.find().toArray()).map(({ v }) => v), [3]);
});

test("a failed commit is retried, and a lost answer does no harm", async () => {
  const storage = new MemoryStorage();
  storage.loseAnswers();
  const db = await opened(storage);
  const c = db.collection("c");
  storage.fail("commit");
  await c.insertOne(row(1));
  storage.loseAnswers();
  await c.insertOne(row(2));
  storage.loseAnswers();
  await db.flush();
  storage.loseAnswers();
  assert.equal((await c.deleteMany({ v: 1 })).deletedCount, 1);
  storage.loseAnswers();
  await c.createIndex({ v: 1 });
  assert.deepEqual((await c.find({ v: { $gt: 0 } }).hint("v_1").toArray()).map(({ v }) => v), [2]);
  assert.equal((await db.command({ validate: "c", full: true }))["valid"], true);
});

test("whichever commit fails or loses its answer, acknowledged rows are stored and nothing is duplicated", async () => {
  const work = async (storage: MemoryStorage, from: number, isLate: boolean): Promise<number> => {
    let calls = 0;
    const acknowledged: number[] = [];
    const faulty: HostStorage = {
      ...methods(storage),
      commit(changes) {
        const isFaulty = calls === from || calls === from + 1;
        calls++;
        if (isFaulty && !isLate) throw new Error("Injected");
        const took = storage.commit(changes);
        if (isFaulty) throw new Error("Injected");
        return took;
      },
    };
    const attempt = async (work: () => Promise<unknown>): Promise<boolean> => work().then(() => true, (error: unknown) => refused("OperationFailed", /Injected/)(error) && false);
    const db = await open("plant", { storage: faulty });
    const create = () => db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    if (!(await attempt(create))) (await attempt(create)) || (await create());
    const c = db.collection("c");
    for (let i = 0; i < 4; i++) {
      if (await attempt(() => c.insertOne(row(i)))) acknowledged.push(i);
      if (i === 1) await attempt(() => db.flush());
    }
    await attempt(() => db.flush());
    const check = async (db: Database): Promise<void> => {
      const found = (await db.collection("c").find().sort({ at: 1 }).toArray()).map(({ v }) => v as number);
      assert.equal(new Set(found).size, found.length, `doubled: ${found}`);
      assert.deepEqual(found.filter((v) => acknowledged.includes(v)), acknowledged);
    };
    await check(db);
    await check(await open("plant", { storage: storage.copy() }));
    return calls;
  };
  for (const isLate of [false, true]) {
    let at = 0;
    for (let calls = 1; at < calls; at++) calls = await work(new MemoryStorage(), at, isLate);
    assert.ok(at > 6);
  }
});

test("a failed guard is retried as with any other storage", async () => {
  const storage = new MemoryStorage();
  const [one, other] = [await opened(storage), await open("plant", { storage })];
  await one.collection("c").insertMany([0, 1, 2, 3].map((minute) => row(minute)));
  let refusals = 0;
  const seen: string[] = [];
  const meddling: HostStorage = {
    ...methods(storage),
    async commit(changes: StorageChange[]) {
      // Another context deletes before the first delete of this one.
      if (refusals === 0 && changes.some(([kind]) => kind === "require") && changes.length > 1) {
        refusals = -1;
        await other.collection("c").deleteMany({ v: 0 });
      }
      const took = storage.commit(changes);
      seen.push(String(took));
      if (!took) refusals = 1;
      return took;
    },
  };
  const third = await open("plant", { storage: meddling });
  await third.flush();
  await third.collection("c").deleteMany({ v: 3 });
  assert.equal(refusals, 1, seen.join());
  assert.deepEqual((await one.collection("c").find().sort({ at: 1 }).toArray()).map(({ v }) => v), [1, 2]);
});

test("a storage that breaks its contract gets a clear error", async () => {
  const breaches: [Partial<Record<keyof HostStorage, unknown>>, RegExp][] = [
    [{ commit: () => undefined }, /breaks its contract: commit must return true or false/],
    [{ getMany: () => [] }, /breaks its contract: getMany must return one value per key/],
    [{ getMany: () => "x" }, /breaks its contract: it must return an array/],
    [{ getMany: (keys: unknown[]) => keys.map(() => 5) }, /breaks its contract: keys and values must be Uint8Arrays/],
    [{ scan: () => ({}) }, /breaks its contract: it must return an array/],
    [{ scan: () => [1] }, /breaks its contract: it must return an array/],
    [{ scan: () => [[5, new Uint8Array(1)]] }, /breaks its contract: keys and values must be Uint8Arrays/],
    [{ scan: (_: unknown, page: { entriesMax: number }) => Array(page.entriesMax + 1).fill([new Uint8Array(1), new Uint8Array(1)]) }, /breaks its contract: scan must not return more entries/],
  ];
  for (const [breach, pattern] of breaches) {
    const db = await open("plant", { storage: { ...methods(new MemoryStorage()), ...breach } as HostStorage });
    await assert.rejects(async () => {
      await db.createCollection("c", { timeseries: { timeField: "at" } });
      await db.collection("c").insertOne(row(1));
      await db.collection("c").find().toArray();
      await db.dropDatabase();
    }, refused("OperationFailed", pattern), String(pattern));
  }
});

function methods(storage: MemoryStorage): HostStorage {
  return { getMany: (keys) => storage.getMany(keys), scan: (ranges, page) => storage.scan(ranges, page), commit: (changes) => storage.commit(changes) };
}

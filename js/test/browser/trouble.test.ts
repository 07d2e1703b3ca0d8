// Trouble in browsers: no room, no storage, a deleted or blocked database, and a page that is left and comes back.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import type { Collection, Database } from "../../src/index.js";
import { BROWSER, IN_WORKER, errors, loaded, running, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

useBrowser();

/** Runs in the page: the error of `work`, as text. */
const FAILURE = `globalThis.failure = async (work) => {
  try { await work(); return "no error"; } catch (e) { return [e.name, e.code ?? "", e.codeName ?? "", e.message].join(" | "); }
}`;

declare const failure: (work: () => unknown) => Promise<string>;

async function troubled(): Promise<Page> {
  const page = await tab();
  await page.evaluate(FAILURE);
  return page;
}

/** The same for another origin, whose quota the browser has not cached. */
async function troubledElsewhere(): Promise<Page> {
  const page = await tab();
  await page.goto(page.url().replace("127.0.0.1", "localhost"));
  await loaded(page);
  await page.evaluate(FAILURE);
  return page;
}

const skip = !BROWSER.startsWith("chromium") && "only Chromium's quota can be set";

/** Options of tests that change IndexedDB in the page. */
const inPage = { skip: IN_WORKER && "the worker has an IndexedDB of its own" };

/** Limits the quota of the page to this many bytes. Resolves to a function that undoes it. */
async function limited(page: Page, bytes: number): Promise<() => Promise<void>> {
  const devtools = await running().newCDPSession(page);
  const origin = await page.evaluate(() => location.origin);
  // Before the first write, because Chromium caches the quota for a while.
  const { usage } = await devtools.send("Storage.getUsageAndQuota", { origin });
  await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: usage + bytes });
  return async () => void (await devtools.send("Storage.overrideQuotaForOrigin", { origin }));
}

test("if the browser has no room left, an insert fails with a typed error and acknowledged rows stay", { skip }, async () => {
  const page = await troubled();
  const lift = await limited(page, 3_000_000);
  const { acknowledged, refusal } = await page.evaluate(async () => {
    const db = await timepail.open("full");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    Object.assign(globalThis, { db, c });
    let acknowledged = 0;
    // Random data, which does not compress.
    const rows = (): object[] => Array.from({ length: 500 }, () => ({ at: new Date(acknowledged++), noise: crypto.getRandomValues(new Uint8Array(500)) }));
    for (;;) {
      const before = acknowledged;
      const refusal = await failure(() => c.insertMany(rows()));
      if (refusal !== "no error") return { acknowledged: before, refusal };
    }
  });
  assert.ok(acknowledged > 500 && acknowledged < 100_000, String(acknowledged));
  assert.match(refusal, /^\w+ \| 14031 \| OutOfDiskSpace \| .*quota/i);
  await lift();
  const after = await page.evaluate(async () => {
    const { db, c } = globalThis as unknown as { db: Database; c: Collection };
    const kept = await c.countDocuments();
    await c.insertOne({ at: new Date(), noise: 1 });
    const checked = await db.command({ validate: "c", full: true });
    return { kept, then: await c.countDocuments(), valid: checked["valid"] };
  });
  assert.deepEqual(after, { kept: acknowledged, then: acknowledged + 1, valid: true });
  await page.close();
});

test("without quota left, rows can be deleted by series, time and collection, and then inserts work again", { skip }, async () => {
  const page = await troubledElsewhere();
  const lift = await limited(page, 6_000_000);
  const full = await page.evaluate(async () => {
    const db = await timepail.open("emptied");
    await db.createCollection("other", { timeseries: { timeField: "at" } });
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "series" } });
    Object.assign(globalThis, { db, c });
    for (let hour = 0; ; hour++) {
      // Random data, an hour of one series per call: deleted rows share no bucket and no call with remaining ones.
      const noise = (): Uint8Array => crypto.getRandomValues(new Uint8Array(500));
      const rows = Array.from({ length: 200 }, (_, n) => ({ at: new Date(hour * 3_600_000 + n), series: `s${hour % 4}`, noise: noise() }));
      const refusal = await failure(() => c.insertMany(rows));
      if (refusal !== "no error") return { hours: hour, refusal };
      // Some rows are in buckets, and some in the journal. There may be no room for this either.
      if (hour % 4 === 3) await failure(() => db.command({ flush: 1 }));
    }
  });
  assert.match(full.refusal, / 14031 /);
  assert.ok(full.hours > 8, String(full.hours));
  const hours = Array.from({ length: full.hours }, (_, hour) => hour);
  const other = await troubledElsewhere();
  await other.evaluate(async () => {
    const db = await timepail.open("emptied");
    Object.assign(globalThis, { c: db.collection("c") });
    return db.collection("c").countDocuments();
  });
  const emptied = await page.evaluate(async () => {
    const { db, c } = globalThis as unknown as { db: Database; c: Collection };
    const bySeries = await c.deleteMany({ series: "s1" });
    const byTime = await c.deleteMany({ at: { $lt: new Date(4 * 3_600_000) } });
    const dropped = await db.collection("other").drop();
    return { bySeries: bySeries.deletedCount, byTime: byTime.deletedCount, dropped, left: await c.countDocuments() };
  });
  const left = 200 * hours.filter((hour) => hour >= 4 && hour % 4 !== 1).length;
  assert.deepEqual(emptied, { bySeries: 200 * hours.filter((hour) => hour % 4 === 1).length, byTime: 600, dropped: true, left });
  assert.equal(await other.evaluate(() => (globalThis as unknown as { c: Collection }).c.countDocuments()), left);
  // Chromium's LevelDB frees space only when it compacts, at a time of its choice.
  if (BROWSER === "chromium") await lift();
  const after = await page.evaluate(async () => {
    const { db, c } = globalThis as unknown as { db: Database; c: Collection };
    await c.insertOne({ at: new Date(), series: "s1" });
    await db.command({ flush: 1 });
    const checked = await db.command({ validate: "c", full: true });
    return { count: await c.countDocuments(), valid: checked["valid"] };
  });
  assert.deepEqual(after, { count: left + 1, valid: true });
  await lift();
  await other.close();
  await page.close();
});

test("without IndexedDB, memory is the default, and requesting IndexedDB is a typed error", inPage, async () => {
  const page = await troubled();
  const seen = await page.evaluate(async () => {
    Object.defineProperty(globalThis, "indexedDB", { value: undefined, configurable: true });
    const db = await timepail.open("nowhere");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    await c.insertOne({ at: new Date() });
    const count = await c.countDocuments();
    await db.close();
    return { count, refusal: await failure(() => timepail.open("nowhere", { storage: "indexeddb" })) };
  });
  assert.equal(seen.count, 1);
  assert.match(seen.refusal, /^\w+ \| 20 \| IllegalOperation \| .*IndexedDB/);
  await page.close();
});

test("if the browser refuses to open IndexedDB, as in some private windows, the error says so", inPage, async () => {
  const page = await troubled();
  const seen = await page.evaluate(async () => {
    const open = IDBFactory.prototype.open;
    IDBFactory.prototype.open = () => {
      throw new DOMException("The operation is insecure.", "SecurityError");
    };
    const refusal = await failure(() => timepail.open("private", { storage: "indexeddb" }));
    IDBFactory.prototype.open = open;
    const db = await timepail.open("private", { storage: "indexeddb" });
    await db.close();
    return refusal;
  });
  assert.match(seen, /^\w+ \| 96 \| OperationFailed \| .*SecurityError/);
  await page.close();
});

test("a database deleted while open is released, and its collections are gone with a typed error", async () => {
  const page = await troubled();
  const seen = await page.evaluate(async () => {
    const db = await timepail.open("deleted");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    await c.insertOne({ at: new Date() });
    const deletion = await new Promise((resolve) => {
      const request = indexedDB.deleteDatabase("timepail:deleted");
      request.onsuccess = () => resolve("deleted");
      request.onblocked = () => resolve("blocked");
    });
    const refusal = await failure(() => c.insertOne({ at: new Date() }));
    const again = await db.createCollection("c", { timeseries: { timeField: "at" } });
    await again.insertOne({ at: new Date() });
    const count = await again.countDocuments();
    await db.close();
    return { deletion, refusal, count };
  });
  assert.equal(seen.deletion, "deleted");
  assert.match(seen.refusal, /^\w+ \| 26 \| NamespaceNotFound \| /);
  assert.equal(seen.count, 1);
  await page.close();
});

test("a database deleted while it is being opened is released and recreated", async () => {
  const page = await troubled();
  const seen = await page.evaluate(async () => {
    const opening = timepail.open("raced");
    const deletion = await new Promise((resolve) => {
      const request = indexedDB.deleteDatabase("timepail:raced");
      request.onsuccess = () => resolve("deleted");
      request.onblocked = () => resolve("blocked");
    });
    const db = await opening;
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    await c.insertOne({ at: new Date() });
    const count = await c.countDocuments();
    await db.close();
    return { deletion, count };
  });
  assert.deepEqual(seen, { deletion: "deleted", count: 1 });
  await page.close();
});

test("an upgrade by another version of a page is refused without waiting", async () => {
  const page = await troubled();
  const seen = await page.evaluate(async () => {
    const opening = indexedDB.open("timepail:later", 7);
    opening.onupgradeneeded = () => opening.result.createObjectStore("entries");
    const other = await new Promise<IDBDatabase>((resolve) => (opening.onsuccess = () => resolve(opening.result)));
    const refusal = await failure(() => timepail.open("later"));
    other.close();
    return refusal;
  });
  assert.match(seen, /VersionError/);
  await page.close();
});

test("a connection closed by the browser is reopened, and a running insert is stored once", inPage, async () => {
  const page = await troubled();
  const count = await page.evaluate(async () => {
    const connections: IDBDatabase[] = [];
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (this: IDBDatabase, ...args: Parameters<typeof transaction>) {
      connections.push(this);
      return transaction.apply(this, args);
    };
    const db = await timepail.open("cut");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    for (let n = 0; n < 20; n++) {
      const inserted = c.insertOne({ at: new Date(n), n });
      if (n % 3 === 0) connections.at(-1)!.close(); // behind the engine's back
      await inserted;
    }
    IDBDatabase.prototype.transaction = transaction;
    const rows = await c.find().toArray();
    await db.close();
    return [rows.length, new Set(rows.map((row) => row["n"])).size];
  });
  assert.deepEqual(count, [20, 20]);
  await page.close();
});

test("a page that is left and comes back continues with its database", async () => {
  const page = await troubled();
  await page.evaluate(async () => {
    const db = await timepail.open("left");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    await c.insertOne({ at: new Date(0) });
    Object.assign(globalThis, { c });
  });
  await page.goto("about:blank");
  await page.goBack();
  await loaded(page);
  const count = await page.evaluate(async () => {
    // A page that was kept still has its objects; a reloaded one does not.
    const kept = (globalThis as { c?: Collection }).c;
    const c = kept ?? (await timepail.open("left")).collection("c");
    await c.insertOne({ at: new Date(1) });
    return c.countDocuments();
  });
  assert.equal(count, 2);
  await page.close();
});

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

// Live queries in two tabs: messages, lost messages, and random histories of both tabs.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { errors, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");
type Database = import("../../src/index.js").Database;
type LiveQuery = import("../../src/index.js").LiveQuery<Record<string, any>[]>;
declare let db: Database;
declare let live: LiveQuery;
/** The results that subscribers got, as text. */
declare let heard: string[];

useBrowser();

const START = Date.UTC(2024, 0, 1);

/** Opens a tab with that database and a live query of its newest five rows. */
async function follower(name: string): Promise<Page> {
  const page = await tab();
  await page.evaluate(async (name) => {
    const db = await timepail.open(name);
    await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    const live = db.collection("c").find().sort({ at: -1 }).limit(5).map(({ n }) => n as object).live();
    const heard: string[] = [];
    Object.assign(globalThis, { db, live, heard });
    live.subscribe((rows) => heard.push(JSON.stringify(rows)));
  }, name);
  await hears(page, []);
  return page;
}

/** Waits for a result inside the page: a tab in the background draws no frames, on which `waitForFunction` depends. */
async function hears(page: Page, rows: number[]): Promise<void> {
  const found = await page.evaluate(async (expected) => {
    const late = new Promise((resolve) => setTimeout(resolve, 15_000));
    const seen = (async () => {
      for await (const rows of live) if (JSON.stringify(rows) === expected) return;
    })();
    await Promise.race([seen, late]);
    return heard.at(-1);
  }, JSON.stringify(rows));
  assert.equal(found, JSON.stringify(rows));
}

const insert = (page: Page, ...rows: number[]): Promise<unknown> =>
  page.evaluate(([start, ...rows]) => db.collection("c").insertMany(rows.map((n) => ({ at: new Date(start! + n * 1000), m: n % 2, n }))), [START, ...rows]);

test("two tabs follow what either of them writes", async () => {
  const [here, there] = [await follower("both"), await follower("both")];
  await insert(there, 1, 2);
  await Promise.all([hears(here, [2, 1]), hears(there, [2, 1])]);
  await insert(here, 3, 0);
  await Promise.all([hears(here, [3, 2, 1, 0]), hears(there, [3, 2, 1, 0])]);
  await there.evaluate(() => db.collection("c").deleteMany({ m: 1 }));
  await Promise.all([hears(here, [2, 0]), hears(there, [2, 0])]);
  await there.evaluate(() => db.dropCollection("c"));
  await Promise.all([hears(here, []), hears(there, [])]);
  await Promise.all([here.close(), there.close()]);
});

test("a change is found even if its message is lost, as of a tab that dies right after its commit", async () => {
  const [here, there] = [await follower("lost"), await follower("lost")];
  await there.evaluate(() => {
    BroadcastChannel.prototype.postMessage = () => {};
  });
  await insert(there, 1);
  // Firefox has one visible tab at a time.
  await here.bringToFront?.();
  await hears(here, [1]);
  await insert(there, 2);
  await there.close();
  await hears(here, [2, 1]);
  await here.close();
});

test("a page that is shown again looks at once", async () => {
  const [here, there] = [await follower("hidden"), await follower("hidden")];
  await here.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { get: () => "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await there.evaluate(() => {
    BroadcastChannel.prototype.postMessage = () => {};
  });
  await insert(there, 1);
  // The clock of the page stands still, so only the event can cause the update.
  await here.evaluate(() => {
    Object.assign(globalThis, { setTimeout: () => 0 });
    Object.defineProperty(document, "visibilityState", { get: () => "visible" });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await hears(here, [1]);
  await Promise.all([here.close(), there.close()]);
});

test("without a subscriber nothing is left, and closing the database ends a loop", async () => {
  const page = await follower("ends");
  const results = await page.evaluate(async () => {
    const loop = (async () => {
      let count = 0;
      for await (const rows of live) count += rows ? 1 : 0;
      return count;
    })();
    await db.collection("c").insertOne({ at: new Date(), n: 7 });
    while (heard.at(-1) !== "[7]") await new Promise((resolve) => setTimeout(resolve));
    await db.close();
    return loop;
  });
  assert.ok(results >= 1);
  await page.close();
});

test("a history by two tabs: at rest, both results are those of a fresh query", async () => {
  const pages = [await follower("history"), await follower("history")];
  const fresh = (page: Page): Promise<string> =>
    page.evaluate(async () => JSON.stringify((await db.collection("c").find().sort({ at: -1 }).limit(5).toArray()).map((row) => row["n"])));
  let next = 0;
  for (let step = 0; step < 25; step++) {
    const writer = pages[(step * 7) % 3 % 2]!;
    if (step % 5 === 4) await writer.evaluate(([start, from]) => db.collection("c").deleteMany({ at: { $gte: new Date(start! + from! * 1000) } }), [START, next - 3]);
    else if (step % 11 === 10) await writer.evaluate(() => db.flush());
    // Some measurements arrive after others with a newer time.
    else await insert(writer, ...(step % 3 === 0 ? [next + 2, next, next + 1] : [next, next + 1, next + 2]));
    next += 2;
    const expected = JSON.parse(await fresh(writer)) as number[];
    await Promise.all(pages.map((page) => hears(page, expected)));
  }
  await Promise.all(pages.map((page) => page.close()));
});

test("many live queries hear of changes in the other tab by few looks at storage", async () => {
  const [here, there] = [await follower("many"), await follower("many")];
  const write = (from: number): Promise<unknown> =>
    there.evaluate(([start, from]) => db.collection("c").insertMany(Array.from({ length: 100 }, (_, m) => ({ at: new Date(start! + from! + m), m, n: from! + m }))), [START, from]);
  await here.evaluate(() => {
    const newest = new Map<number, number>();
    const queries = Array.from({ length: 100 }, (_, m) => db.collection("c").find({ m }).sort({ at: -1 }).limit(1).live());
    queries.forEach((query, m) => query.subscribe(([row]) => row && newest.set(m, row["n"] as number)));
    // Waits until all queries have the rows from that number on. Resolves to the number of refreshes and the number of transactions so far.
    const hear = async (from: number): Promise<[asked: number, transactions: number]> => {
      const late = performance.now() + 15_000;
      while (performance.now() < late && (newest.size < 100 || [...newest].some(([m, n]) => n !== from + m))) await new Promise((resolve) => setTimeout(resolve));
      if (performance.now() >= late) throw new Error(JSON.stringify([...newest]));
      const explained = await Promise.all(queries.map((query) => query.explain()));
      return [explained.reduce((sum, { asked }) => sum + asked, 0), (globalThis as unknown as { transactions: number }).transactions];
    };
    Object.assign(globalThis, { hear, transactions: 0 });
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (...given) {
      (globalThis as unknown as { transactions: number }).transactions++;
      return transaction.apply(this, given);
    };
  });
  const heard = (from: number): Promise<[number, number]> => here.evaluate((from) => (globalThis as unknown as { hear(from: number): Promise<[number, number]> }).hear(from), from);
  // They begin one by one, and each hears of the first change as soon as it has begun. From then on, they ask together.
  await write(0);
  const [askedBefore, before] = await heard(0);
  for (let from = 100; from <= 300; from += 100) {
    await write(from);
    await heard(from);
  }
  const [asked, transactions] = await heard(300);
  assert.ok(asked - askedBefore >= 300, `asked ${asked - askedBefore} times`);
  // How often they ask depends on the machine. With an engine in a worker, the worker reads the storage, and nothing is counted here.
  assert.ok((transactions - before) * 4 < asked - askedBefore, `${transactions - before} transactions, asked ${asked - askedBefore} times`);
  await Promise.all([here.close(), there.close()]);
});

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

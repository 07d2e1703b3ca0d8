// A page in the back/forward cache that comes back: it continues, and others never wait for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { BROWSER, IN_WORKER, errors, running, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

useBrowser({}, { keepsPages: true });

/** The report of page/kept.html: whether it was kept, the outcome of the insert in progress and how often its row is stored, and then all rows, including one more. */
interface Told {
  wasKept: boolean;
  pending?: string;
  sent?: number;
  numbers?: number[];
  error?: string;
  /** Why Chromium has not kept the page, for whoever reads that a test has failed. */
  why?: string[];
}

/** WebKit would suspend a worker in the middle of a transaction, so it is ended, and an insert that is under way fails. */
const endsWorkers = BROWSER === "webkit" && IN_WORKER;

/** A page that has opened the database `name`, stored 99 rows, and then navigated away while it inserts another one, or after that if `isSettled`. */
async function left(name: string, isSettled = false): Promise<Page> {
  const page = await tab(`kept.html?${name}`);
  if (isSettled) await page.evaluate(() => (globalThis as unknown as { settled: () => Promise<unknown> }).settled());
  await page.goto((await page.evaluate(() => location.href)).replace(/kept.html\?\w+/, "index.html"));
  return page;
}

/** Goes back. `other` is a tab that receives the page's report. */
async function back(page: Page, other: Page, name: string): Promise<Told> {
  const why: string[] = [];
  if (BROWSER.startsWith("chromium")) {
    const inspector = await running().newCDPSession(page);
    await inspector.send("Page.enable");
    inspector.on("Page.backForwardCacheNotUsed", (event) => why.push(...event.notRestoredExplanations.map(({ reason }) => reason)));
  }
  // WebKit's driver loses the result of a script if its page navigates away; Chromium's waits for a load that never happens.
  if (BROWSER === "webkit") await page.goBack();
  else await page.evaluate(() => void setTimeout(() => history.back()));
  await other.evaluate((name) => void Object.assign(globalThis, { told: () => localStorage.getItem(name) }), name);
  const told = await other.waitForFunction(() => (globalThis as unknown as { told: () => string | null }).told());
  const found = JSON.parse((await told.jsonValue())!) as Told;
  if (why.length > 0) found.why = why;
  if (!endsWorkers || !found.pending?.startsWith("WorkerError")) return found;
  assert.match(found.pending, /the page was left during the call; what was acknowledged is stored, of this call it is not known/);
  assert.ok(found.sent! <= 1);
  return { ...found, pending: "stored", sent: 1 };
}

/** Firefox does not keep pages that hold a Web Lock: they are loaded again. */
const keeps = BROWSER !== "firefox";

/**
 * Chromium's reasons to drop a page that would be the fault of the package or of these tests. For others, such as little memory or a page that took too long to
 * stop, Chromium loads any page again. That happens on busy machines.
 */
const OURS = /IndexedDB|WebLock|Broadcast|Unload|Worker|Disabled/;

/** Asserts that a page was kept, or was loaded again because the browser dropped it, and that it found these rows. */
function cameBack({ why = [], ...told }: Told, numbers: number[]): void {
  const isDropped = why.length > 0 && !why.some((reason) => OURS.test(reason));
  const kept = { wasKept: true, pending: "stored", sent: 1, numbers, why: [] };
  assert.deepEqual({ ...told, why }, keeps && !isDropped ? kept : { wasKept: false, numbers, why });
}

/** The numbers of all stored rows except that of the insert in progress, with duplicates. */
const numbers = (page: Page, name: string): Promise<number[]> =>
  page.evaluate(async (name) => {
    const db = await timepail.open(name);
    const rows = await db.collection("c").find({ n: { $gte: 0 } }).toArray();
    const { valid } = await db.command({ validate: "c", full: true });
    await db.close();
    if (!valid) throw new Error("the collection is not valid");
    return rows.map((row) => row["n"] as number).sort((a, b) => a - b);
  }, name);

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

test("a page comes back with its database open, and continues", async () => {
  const page = await left("back");
  const other = await tab();
  assert.deepEqual(await numbers(other, "back"), upTo(99));
  cameBack(await back(page, other, "back"), [...upTo(99), 1000]);
  assert.deepEqual(await numbers(other, "back"), [...upTo(99), 1000]);
  await Promise.all([page.close(), other.close()]);
});

test("others write and fold its journal while a page is in the cache, and it sees all of it afterwards", async () => {
  const page = await left("written");
  const other = await tab();
  await other.evaluate(async () => {
    // A message makes some browsers discard the page, so none is sent here.
    BroadcastChannel.prototype.postMessage = () => {};
    const db = await timepail.open("written");
    await db.collection("c").insertMany([99, 100].map((n) => ({ at: new Date(n * 1000), m: "kept", n })));
    await db.flush();
    await db.command({ foldJournals: 1, alive: [] });
    await db.close();
  });
  assert.deepEqual(await numbers(other, "written"), upTo(101));
  cameBack(await back(page, other, "written"), [...upTo(101), 1000]);
  assert.deepEqual(await numbers(other, "written"), [...upTo(101), 1000]);
  await Promise.all([page.close(), other.close()]);
});

test("others that send change events do not wait for a page in the cache, which comes back, kept or reloaded", async () => {
  const page = await left("told");
  const other = await tab();
  await other.evaluate(async () => {
    const db = await timepail.open("told");
    const c = db.collection("c");
    await c.insertMany([99, 100].map((n) => ({ at: new Date(n * 1000), m: "kept", n })));
    await c.deleteMany({ n: 100 });
    await db.close();
  });
  assert.deepEqual((await back(page, other, "told")).numbers, [...upTo(100), 1000]);
  assert.deepEqual(await numbers(other, "told"), [...upTo(100), 1000]);
  await Promise.all([page.close(), other.close()]);
});

for (const [what, version, error] of [
  ["deleted", undefined, /Collection .*c.* does not exist|NamespaceNotFound/],
  ["upgraded", 7, /VersionError/],
] as const) {
  test(`a database that is ${what} while a page is in the cache does not wait for it, and the page gets the event afterwards`, async () => {
    // WebKit closes the connection of an ended worker only when the page comes back or is dropped.
    const page = await left(what, endsWorkers);
    const other = await tab();
    const outcome = await other.evaluate(
      ([name, version]) =>
        new Promise((resolve) => {
          const request = version ? indexedDB.open(`timepail:${name}`, version) : indexedDB.deleteDatabase(`timepail:${name}`);
          request.onblocked = () => resolve("blocked");
          request.onerror = () => resolve(request.error!.name);
          request.onsuccess = () => {
            (request.result as IDBDatabase | undefined)?.close();
            resolve("done");
          };
        }),
      [what, version] as const,
    );
    assert.equal(outcome, "done");
    assert.match((await back(page, other, what)).error ?? "no error", error);
    await Promise.all([page.close(), other.close()]);
  });
}

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

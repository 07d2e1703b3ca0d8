// The built package in real browsers (BROWSER names one): IndexedDB, reloads, several tabs, crashes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { BROWSER, bundled, errors, loaded, restart, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

useBrowser();

async function storeAndLeave(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const db = await timepail.open("reload");
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    await c.deleteMany({});
    await c.insertMany(Array.from({ length: 2500 }, (_, i) => ({ at: new Date(i * 1000), m: i % 2 ? "a" : "b", x: i })));
    // Without close: a tab may end at any time.
  });
}

async function assertStored(page: Page): Promise<void> {
  const stored = await page.evaluate(async () => {
    const db = await timepail.open("reload");
    const c = db.collection("c");
    const count = await c.countDocuments();
    const { at, x } = (await c.find({ m: "a" }).sort({ at: 1 }).toColumns()) as { at: Float64Array; x: Float64Array };
    const one = await c.findOne({ x: 1234 });
    await db.close();
    return { count, rows: at.length, first: x[0], last: x[x.length - 1], one: one?.["at"] instanceof Date && one["at"].getTime() };
  });
  assert.deepEqual(stored, { count: 2500, rows: 1250, first: 1, last: 2499, one: 1_234_000 });
}

test("measurements are in IndexedDB after a reload", async () => {
  const page = await tab();
  await storeAndLeave(page);
  await page.reload();
  await loaded(page);
  await assertStored(page);
  await page.close();
});

test("measurements are in IndexedDB after a restart of the browser", { skip: BROWSER === "webkit" && "what a driven WebKit stores ends with it" }, async () => {
  await storeAndLeave(await tab());
  await restart();
  const page = await tab();
  await assertStored(page);
  await page.close();
});

/** The script of a worker that inserts the documents it receives into the database `tabs`. */
const WRITER = `
  import { open } from "./dist/index.js";
  onmessage = async ({ data: { wasm, who, commits } }) => {
    const db = await open("tabs", { wasm });
    const c = db.collection("c");
    for (let i = 0; i < commits; i++) {
      await c.insertMany(Array.from({ length: 50 }, (_, j) => ({ at: new Date(i * 50_000 + j * 1000), m: "same", n: who * 1e6 + i * 50 + j })));
      if (i % 5 === 0) await db.flush();
    }
    await db.close();
    postMessage(commits * 50);
  };`;

test("four tabs and a worker that write one series concurrently lose and duplicate nothing, even if another tab is killed", async () => {
  const first = await tab();
  const script = await bundled(WRITER);
  await first.evaluate(async () => {
    const db = await timepail.open("tabs");
    await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    await db.close();
  });
  const tabs = await Promise.all([tab(), tab(), tab(), tab()]);
  const victim = await tab();
  const write = (page: Page, who: number, commits: number) =>
    page.evaluate(
      async ([who, commits]) => {
        const db = await timepail.open("tabs");
        const c = db.collection("c");
        for (let i = 0; i < commits!; i++) {
          const rows = Array.from({ length: 50 }, (_, j) => ({ at: new Date(i * 50_000 + j * 1000), m: "same", n: who! * 1e6 + i * 50 + j }));
          await c.insertMany(rows);
          if (i % 7 === who! % 7) await db.flush();
          (globalThis as { acknowledged?: number }).acknowledged = (i + 1) * 50;
        }
        await db.close();
        return commits! * 50;
      },
      [who, commits] as const,
    );
  const doomed = write(victim, 9, 10_000).catch(() => "killed");
  await victim.waitForFunction(() => ((globalThis as { acknowledged?: number }).acknowledged ?? 0) >= 500);
  const acknowledged = await victim.evaluate(() => (globalThis as { acknowledged?: number }).acknowledged!);
  const inWorker = first.evaluate(
    ([script, who, commits]) =>
      new Promise<number>((resolve, reject) => {
        const worker = new Worker(URL.createObjectURL(new Blob([script!], { type: "text/javascript" })), { type: "module" });
        worker.onmessage = ({ data }) => resolve(data as number);
        worker.onerror = (event) => reject(new Error(event.message));
        worker.postMessage({ wasm: new URL("/timepail/timepail.wasm", location.href).href, who, commits });
      }),
    [script, 4, 20] as const,
  );
  const [counts] = await Promise.all([Promise.all([...tabs.map((page, who) => write(page, who, 20)), inWorker]), victim.close()]);
  assert.equal(await doomed, "killed");
  assert.deepEqual(counts, [1000, 1000, 1000, 1000, 1000]);
  const found = await first.evaluate(async () => {
    const db = await timepail.open("tabs");
    const c = db.collection("c");
    const rows = (await c.find({ m: "same" }).toArray()).map((d) => d["n"] as number);
    const buckets = await db.collection("system.buckets.c").find().toArray();
    const inBuckets = buckets.map((b) => (b["control"] as { count: number }).count);
    await db.close();
    return { rows, inBuckets };
  });
  assert.equal(new Set(found.rows).size, found.rows.length, "a row is there twice");
  for (let who = 0; who < 5; who++) {
    assert.equal(found.rows.filter((n) => Math.floor(n / 1e6) === who).length, 1000, `rows of writer ${who}`);
  }
  assert.ok(found.rows.filter((n) => Math.floor(n / 1e6) === 9).length >= acknowledged, "acknowledged rows of the killed tab");
  // A bucket that several contexts reopen at the same time may take a thousand rows from each.
  assert.ok(found.inBuckets.every((n) => n >= 1 && n <= 6 * 1000));
  assert.equal(found.inBuckets.reduce((a, b) => a + b, 0), found.rows.length);
  await Promise.all([...tabs, first].map((page) => page.close()));
});

test("a collection dropped in one tab is gone in another, and a recreated one is new", async () => {
  const [a, b] = await Promise.all([tab(), tab()]);
  const create = (page: Page) =>
    page.evaluate(async () => {
      const db = await timepail.open("drop");
      Object.assign(globalThis, { db });
      const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
      await c.insertOne({ at: new Date(0), x: 1 });
    });
  await create(a);
  await create(b);
  const outcome = await b.evaluate(async () => {
    const db = (globalThis as unknown as { db: import("../../src/index.js").Database }).db;
    return db.collection("c").countDocuments();
  });
  assert.equal(outcome, 2);
  await a.evaluate(() => (globalThis as unknown as { db: import("../../src/index.js").Database }).db.collection("c").drop());
  const refused = await b.evaluate(async () => {
    const db = (globalThis as unknown as { db: import("../../src/index.js").Database }).db;
    try {
      await db.collection("c").insertOne({ at: new Date(1) });
      return "accepted";
    } catch (error) {
      return (error as { codeName?: string }).codeName;
    }
  });
  assert.equal(refused, "NamespaceNotFound");
  await Promise.all([a.close(), b.close()]);
});

test("a tab gets events of inserts, deletes and expiry in another", async () => {
  const [a, b] = await Promise.all([tab(), tab()]);
  await b.evaluate(async () => {
    // Automatic retention would expire measurements as well, and might come first.
    const db = await timepail.open("events", { retention: "manual" });
    const heard: unknown[] = [];
    db.on("change", (change) => heard.push(change));
    Object.assign(globalThis, { heard });
  });
  await a.evaluate(async () => {
    const db = await timepail.open("events");
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    const row = (ms: number, m: string) => ({ at: new Date(ms), m, x: 1 });
    for (const m of ["a", "b"]) await c.insertMany([row(0, m), row(1000, m), row(Date.now(), m)]);
    await c.deleteMany({ m: "b" });
    // Only now, because a retention pass after any command could precede the delete.
    await db.command({ collMod: "c", expireAfterSeconds: 3600 });
    await db.command({ expire: 1 });
    await c.drop();
    await db.close();
  });
  await b.waitForFunction(() => (globalThis as unknown as { heard: { operation: string }[] }).heard.some((change) => change.operation === "drop"));
  const heard = await b.evaluate(() => (globalThis as unknown as { heard: Record<string, unknown>[] }).heard.map(({ bytes, oldest, ...rest }) => [rest, Number(bytes ?? 1) > 0, oldest instanceof Date]));
  // Insert events are combined; how many depends on their rate.
  const inserted = heard.filter(([change]) => (change as { operation: string }).operation === "insert");
  heard.splice(1, inserted.length, [{ ...(inserted[0]![0] as object), count: inserted.reduce((sum, [change]) => sum + (change as { count: number }).count, 0) }, true, false]);
  const change = (operation: string, more = {}) => ({ operation, collection: "c", local: false, ...more });
  assert.deepEqual(heard, [
    [change("create"), true, false],
    [change("insert", { count: 6 }), true, false],
    [change("delete", { count: 3 }), true, false],
    [change("expire", { count: 2, buckets: 1 }), true, true],
    [change("drop"), true, false],
  ]);
  await Promise.all([a.close(), b.close()]);
});

test("invalid input in the page is a typed error and the database stays usable", async () => {
  const page = await tab();
  const seen = await page.evaluate(async () => {
    const db = await timepail.open("errors");
    const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
    const fail = async (work: () => unknown) => {
      try {
        await work();
        return "no error";
      } catch (error) {
        const e = error as Error & { code?: number; codeName?: string };
        return `${e.name} ${e.code ?? ""} ${e.codeName ?? ""}`.trim();
      }
    };
    const out = {
      missingTime: await fail(() => c.insertOne({ x: 1 } as never)),
      notADate: await fail(() => c.insertOne({ at: 5 } as never)),
      operator: await fail(() => c.find({ x: { $frob: 1 } } as never).toArray()),
      options: await fail(() => db.createCollection("d", { timeseries: { timeField: "a.b" } })),
      notADocument: await fail(() => c.insertMany([7] as never)),
      version: await fail(() => timepail.open("other", { bucketVersion: 3 as never })),
      durability: await fail(() => timepail.open("other", { durability: "sometimes" as never })),
      range: await fail(() => timepail.open("other", { parameters: { timeseriesBucketMaxCount: 0 } })),
      type: await fail(() => timepail.open("other", { parameters: { timeseriesBucketMaxCount: "5" as never } })),
      parameter: await fail(() => timepail.open("other", { parameters: { timeseriesBucketCount: 5 } as never })),
    };
    await c.insertOne({ at: new Date(), x: 1 });
    const count = await c.countDocuments();
    const nothing = await c.find({ x: 99 } as never).toColumns();
    const empty = nothing["at"] instanceof Float64Array && nothing["at"].length === 0 && (await c.find({ x: 99 } as never).toArray()).length === 0;
    await db.close();
    return { ...out, empty, count, closed: await fail(() => c.countDocuments()) };
  });
  assert.equal(seen.count, 1);
  assert.equal(seen.empty, true, "an empty result has an empty time column");
  assert.match(seen.missingTime, /^BulkWriteError 2\b/);
  assert.match(seen.notADate, /^BulkWriteError 2\b/);
  assert.match(seen.operator, /^ServerError 2 BadValue$/);
  assert.match(seen.options, /^ServerError 72 InvalidOptions$/);
  assert.match(seen.notADocument, /^TypeError/);
  assert.match(seen.durability, /^ServerError 72 InvalidOptions$/);
  assert.match(seen.version, /^ServerError 72 InvalidOptions$/);
  assert.match(seen.range, /^ServerError 2 BadValue$/);
  assert.match(seen.type, /^ServerError 14 TypeMismatch$/);
  assert.match(seen.parameter, /^ServerError 72 InvalidOptions$/);
  assert.match(seen.closed, /^ClosedError/);
  await page.close();
});

test("strings compare by the browser's collator if there is a collation", async () => {
  const page = await tab();
  const seen = await page.evaluate(async () => {
    const db = await timepail.open("collation");
    const timeseries = { timeField: "at" };
    const c = await db.createCollection("c", { timeseries });
    const names = ["Zug", "Äpfel", "apfel", "Gunter", "Günter", "a10", "a2"];
    const rows = names.map((name, i) => ({ at: new Date(i), name }));
    await c.insertMany(rows);
    const sorted = async (collation: { locale: string; numericOrdering?: boolean; caseFirst?: string }) => (await c.find().sort({ name: 1 }).collation(collation).toArray()).map((row) => row["name"] as string);
    const fail = async (collation: { locale: string }) => await c.find().collation(collation).toArray().then(() => "nothing", (e: Error & { code?: number }) => e.code);
    const seen = {
      host: [...names].sort(new Intl.Collator("sv").compare),
      sv: await sorted({ locale: "sv" }),
      numeric: (await sorted({ locale: "de", numericOrdering: true })).slice(0, 3),
      equal: await c.countDocuments({ name: "äpfel" }, { collation: { locale: "de", strength: 2 } }),
      base: await c.distinct("name", { name: "APFEL" }, { collation: { locale: "de", strength: 1 } }),
      phonebook: await c.deleteMany({ name: { $gt: "Gu", $lt: "Gunter" } }, { collation: { locale: "de@collation=phonebook" } }),
      shifted: await c.countDocuments({ name: "a-2" }, { collation: { locale: "en", alternate: "shifted" } }),
      unknown: [await fail({ locale: "xx" }), await fail({ locale: "de-DE" }), await fail({ locale: "de_XX" }), await fail({ locale: "a b" }), await fail({ locale: "de@collation=search" })],
    };
    await db.createCollection("d", { timeseries, collation: { locale: "da", strength: 3 } });
    await db.collection("d").insertMany(["a", "A", "b"].map((name, i) => ({ at: new Date(i), name })));
    await db.flush();
    await db.close();
    return seen;
  });
  assert.deepEqual(seen.sv, seen.host);
  assert.deepEqual(seen.sv.slice(-2), ["Zug", "Äpfel"]);
  assert.deepEqual(seen.numeric, ["a2", "a10", "apfel"]);
  assert.deepEqual([seen.equal, seen.base, seen.phonebook.deletedCount, seen.shifted], [1, ["Äpfel"], 1, 1]);
  assert.deepEqual(seen.unknown, [2, 2, 2, 2, 2]);
  await page.reload();
  await loaded(page);
  const again = await page.evaluate(async () => {
    const db = await timepail.open("collation");
    const d = db.collection("d");
    const names = (await d.find().sort({ name: 1 }).toArray()).map((row) => row["name"] as string);
    const above = await d.countDocuments({ name: { $gt: "A" } });
    const [listed] = await db.listCollections({ name: "d" }).toArray();
    await db.close();
    return { names, above, collation: listed!.options!["collation"] };
  });
  // The locale sorts upper case first.
  assert.deepEqual([again.names, again.above], [["A", "a", "b"], 2]);
  assert.deepEqual(again.collation, {
    locale: "da", caseLevel: false, caseFirst: "upper", strength: 3, numericOrdering: false, alternate: "non-ignorable", maxVariable: "punct", normalization: false, backwards: false,
  });
  await page.close();
});

test("indexes are created, used, listed and dropped, and another tab learns of them", async () => {
  const [page, other] = [await tab(), await tab()];
  const seen = await page.evaluate(async () => {
    const db = await timepail.open("indexes");
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "sensor" } });
    const rows = Array.from({ length: 300 }, (_, i) => ({ at: new Date(i * 1000), sensor: { id: i % 30, site: `s${i % 3}` }, v: i }));
    await c.insertMany(rows);
    await db.flush();
    const names = [
      await c.createIndex({ "sensor.site": 1, at: -1 }),
      ...(await c.createIndexes([{ key: "v" }, { key: [["sensor.id", "hashed"]], name: "mine" }, { key: new Map([["sensor.id", 1]]), partialFilterExpression: { "sensor.site": "s1" } }])),
    ];
    const code = async (call: Promise<unknown>) => await call.then(() => 0, (error: Error & { code?: number }) => error.code);
    const explained = await c.find({ "sensor.site": "s1" }).explain("executionStats");
    const cursor = (explained["stages"] as { $cursor?: { queryPlanner: { winningPlan: { inputStage: { indexName: string } } }; executionStats: { totalDocsExamined: number } } }[])[0]!.$cursor!;
    return {
      names,
      index: cursor.queryPlanner.winningPlan.inputStage.indexName,
      examined: Number(cursor.executionStats.totalDocsExamined),
      found: (await c.find({ "sensor.site": "s1" }).toArray()).length,
      hinted: (await c.find({}).hint("mine").toArray()).length,
      refused: [await code(c.createIndex({ v: 1 }, { unique: true } as object)), await code(c.createIndex({ v: "text" })), await code(c.find().hint("none").toArray()), await code(c.insertOne({ at: new Date(0), sensor: { id: 1 }, v: [1] }))],
    };
  });
  assert.deepEqual(seen, { names: ["sensor.site_1_at_-1", "v_1", "mine", "sensor.id_1"], index: "sensor.site_1_at_-1", examined: 10, found: 100, hinted: 300, refused: [72, 72, 2, 5930501] });
  const there = await other.evaluate(async () => {
    const db = await timepail.open("indexes");
    const c = db.collection("c");
    const names = (await c.indexes()).map((index) => index.name);
    const [, , , , partial] = await c.listIndexes().toArray();
    await c.dropIndex("v_1");
    await c.dropIndex({ "sensor.site": 1, at: -1 });
    const left = (await c.indexes()).map((index) => index.name);
    return { names, partial: partial!.partialFilterExpression, left, all: await c.dropIndexes(), none: (await c.indexes()).length };
  });
  assert.deepEqual(there, {
    names: ["sensor_1_at_1", "sensor.site_1_at_-1", "v_1", "mine", "sensor.id_1"],
    partial: { "sensor.site": "s1" },
    left: ["sensor_1_at_1", "mine", "sensor.id_1"],
    all: true,
    none: 0,
  });
  const after = await page.evaluate(async () => {
    const db = await timepail.open("indexes");
    const c = db.collection("c");
    return [(await c.find({ "sensor.site": "s1" }).toArray()).length, (await c.indexes()).length];
  });
  assert.deepEqual(after, [100, 0]);
  await page.close();
  await other.close();
});

test("a tab loads the second half of the module for a collection with a geospatial index", async () => {
  const first = await tab();
  await first.evaluate(async () => {
    const db = await timepail.open("places");
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "ship" } });
    await c.createIndexes([{ key: { place: "2dsphere" } }, { key: { "ship.$**": 1 } }]);
    await c.insertMany(Array.from({ length: 200 }, (_, i) => ({ at: new Date(i * 1000), ship: { id: i % 20 }, place: { type: "Point", coordinates: [(i % 20) * 5, 40] } })));
    await db.flush();
  });
  await first.close();
  const second = await tab();
  const seen = await second.evaluate(async () => {
    const db = await timepail.open("places");
    const c = db.collection("c");
    const code = await c.insertOne({ at: new Date(0), ship: { id: 1 }, place: "at sea" }).then(() => 0, (error: Error & { code?: number }) => error.code);
    await c.insertOne({ at: new Date(0), ship: { id: 77, port: "x" }, place: [50, 40.01] });
    await db.flush();
    const near = { place: { $geoWithin: { $centerSphere: [[50, 40], 0.01] } } };
    const explained = await c.find(near).explain("executionStats");
    const stages = explained["stages"] as { $cursor?: { executionStats: { totalDocsExamined: number } } }[];
    return {
      code,
      near: (await c.find(near).toArray()).length,
      examined: Number(stages[0]!.$cursor!.executionStats.totalDocsExamined) < 8,
      port: await c.countDocuments({ "ship.port": "x" }),
      gone: (await c.deleteMany(near)).deletedCount,
      valid: (await db.command({ validate: "c", full: true }))["valid"],
    };
  });
  assert.deepEqual(seen, { code: 183934, near: 11, examined: true, port: 1, gone: 11, valid: true });
  await second.close();
});

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

// Engines in workers: how they start, are shared and end, and what a page learns when they fail.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import type { Database } from "../../src/index.js";
import { BROWSER, errors, running, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

const files = mkdtempSync(join(tmpdir(), "timepail-worker-"));
useBrowser({ "/files/": files });
after(() => rmSync(files, { recursive: true, force: true }));

/** Runs in the page: keeps the workers that it starts, makes workers of scripts, and tells errors. */
function install(): void {
  const made: Worker[] = [];
  const Real = Worker;
  Object.assign(globalThis, {
    made,
    Worker: class extends Real {
      hasEnded = false;
      constructor(...args: ConstructorParameters<typeof Worker>) {
        super(...args);
        made.push(this);
      }
      override terminate(): void {
        this.hasEnded = true;
        super.terminate();
      }
    },
    make: () => new Worker("/timepail/worker.js", { type: "module" }),
    scripted: (...lines: string[]) => {
      const script = lines.map((line) => `${line};\n`).join("").replaceAll("/timepail/", `${location.origin}/timepail/`);
      return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
    },
    failure: async (work: () => unknown) => {
      try {
        await work();
        return "no error";
      } catch (error) {
        const { name, code, message } = error as Error & { code?: number };
        return [error instanceof timepail.WorkerError ? "WorkerError" : name, code ?? "", message].join(" | ");
      }
    },
    row: (n: number) => ({ at: new Date(n), m: "m", n }),
    timeseries: { timeseries: { timeField: "at", metaField: "m" } },
  });
}
declare const made: (Worker & { hasEnded: boolean })[];
declare const make: () => Worker;
declare const scripted: (...lines: string[]) => Worker;
declare const failure: (work: () => unknown) => Promise<string>;
declare const row: (n: number) => { at: Date; m: string; n: number };
declare const timeseries: { timeseries: { timeField: string; metaField: string } };

async function page(): Promise<Page> {
  const page = await tab();
  await page.evaluate(install);
  return page;
}

test("databases of a page share a worker, which ends with the last of them", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const [a, b] = await Promise.all([timepail.open("shared-a", { worker: true }), timepail.open("shared-b", { worker: "/timepail/worker.js" })]);
    const c = await a.createCollection("c", timeseries);
    await c.insertMany([row(0), row(1)]);
    const count = await c.countDocuments();
    await a.close();
    const between = made.map(({ hasEnded }) => hasEnded);
    await b.createCollection("c", timeseries);
    await b.close();
    const then = made.map(({ hasEnded }) => hasEnded);
    const again = await timepail.open("shared-a", { worker: true });
    const found = await again.collection("c").countDocuments();
    await again.close();
    return { count, between, then, found, workers: made.length, same: a instanceof timepail.Database };
  });
  assert.deepEqual(seen, { count: 2, between: [false], then: [true], found: 2, workers: 2, same: true });
  await p.close();
});

test("errors of the engine in a worker are of the classes that the page has", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const db = await timepail.open("classes", { worker: true });
    const c = await db.createCollection("c", timeseries);
    const of = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => "no error",
        (error: Error & { code?: number }) => [error instanceof timepail.ServerError, error instanceof timepail.BulkWriteError, error instanceof timepail.LoadError, error.code ?? 0],
      );
    const seen = [
      await of(c.find({ n: { $frob: 1 } } as object).toArray()),
      await of(c.insertMany([row(0), { n: 1 } as never])),
      await of(timepail.open("classes", { worker: true, bucketVersion: 3 as never })),
      await of(timepail.open("classes", { worker: make, wasm: "/nowhere.wasm" })),
    ];
    await db.close();
    return seen;
  });
  assert.deepEqual(seen, [[true, false, false, 2], [true, true, false, 2], [true, false, false, 72], [false, false, true, 0]]);
  await p.close();
});

test("columns and modules that a page passes stay its own", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const at = (name: string): string => `/timepail/${name}`;
    const load = async (name: string): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(await (await fetch(at(name))).arrayBuffer());
    const [first, more] = [await load("timepail.wasm"), await load("timepail-more.wasm")];
    const sources = [
      { wasm: first, wasmMore: more },
      { wasm: first.buffer, wasmMore: Promise.resolve(more) },
      { wasm: WebAssembly.compile(first), wasmMore: fetch(at("timepail-more.wasm")) },
      { wasm: await fetch(at("timepail.wasm")), wasmMore: new URL(at("timepail-more.wasm"), location.href) },
      { wasm: at("timepail.wasm"), wasmMore: at("timepail-more.wasm") },
    ];
    const counts = [];
    for (const source of sources) {
      const db = await timepail.open("passed", { worker: make, storage: "memory", ...source });
      const c = await db.createCollection("c", timeseries);
      const times = Float64Array.from({ length: 1000 }, (_, i) => 1e12 + i);
      await c.insertColumns({ at: times, n: times }, { meta: "m" });
      const [group] = await c.aggregate([{ $group: { _id: null, n: { $sum: 1 } } }]).toArray();
      counts.push([group!.n, times.length]);
      await db.close();
    }
    return { counts, left: first.length > 1000 && more.length > 1000 };
  });
  assert.deepEqual(seen, { counts: Array.from({ length: 5 }, () => [1000, 1000]), left: true });
  await p.close();
});

test("after a worker has ended, calls that waited reject, what was acknowledged is there, and the next call starts another", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const db = await timepail.open("ended", { worker: make });
    const c = await db.createCollection("c", timeseries);
    await c.insertMany(Array.from({ length: 500 }, (_, n) => row(n)));
    const cursor = c.find().batchSize(100);
    await cursor.next();
    const waiting = Array.from({ length: 20 }, (_, n) => failure(() => c.insertOne(row(1000 + n))));
    made[0]!.terminate();
    const told = await Promise.all(waiting);
    const count = await c.countDocuments({ n: { $lt: 1000 } });
    // The cursor was in the worker that is gone.
    const rest = await failure(() => cursor.toArray());
    const { insertedCount } = await c.insertMany([row(2000)]);
    const { valid } = await db.command({ validate: "c", full: true });
    await db.close();
    return { told: [...new Set(told)], count, rest, insertedCount, valid, workers: made.length, left: made.filter(({ hasEnded }) => !hasEnded).length };
  });
  const { told, rest, ...others } = seen;
  assert.equal(told.length, 1);
  assert.match(told[0]!, /^WorkerError \| {2}\| The worker of the database "ended" has ended; what was acknowledged is stored, of this call it is not known, and the next one starts another worker$/);
  assert.match(rest, /^ServerError \| 43 \| /);
  assert.deepEqual(others, { count: 500, insertedCount: 1, valid: true, workers: 2, left: 0 });
  await p.close();
});

test("measurements in memory that end with their worker are not replaced by nothing", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const db = await timepail.open("memory", { worker: make, storage: "memory" });
    const c = await db.createCollection("c", timeseries);
    await c.insertOne(row(0));
    const waiting = failure(() => c.countDocuments());
    made[0]!.terminate();
    const told = [await waiting, await failure(() => c.countDocuments()), await failure(() => db.listCollections().toArray())];
    await db.close();
    const again = await timepail.open("memory", { worker: make, storage: "memory" });
    const collections = (await again.listCollections().toArray()).length;
    await again.close();
    return { told: [...new Set(told)], collections, workers: made.length };
  });
  assert.equal(seen.told.length, 1);
  assert.match(seen.told[0]!, /^WorkerError \| .*has ended; its measurements were in memory only, and are gone; close the database and open it again$/);
  assert.deepEqual([seen.collections, seen.workers], [0, 2]);
  await p.close();
});

test("a worker that was passed has messages of its own, and is neither ended nor replaced", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const worker = scripted('import "/timepail/worker.js"', 'onmessage = ({ data }) => postMessage("heard " + data)');
    const heard: unknown[] = [];
    const answered = new Promise((resolve) => {
      worker.addEventListener("message", ({ data }) => {
        heard.push(data);
        resolve(undefined);
      });
    });
    const [a, b] = await Promise.all([timepail.open("own-a", { worker }), timepail.open("own-b", { worker })]);
    const c = await a.createCollection("c", timeseries);
    await c.insertOne(row(0));
    await b.close();
    worker.postMessage("this");
    await answered;
    await a.close();
    const isLeft = !made[0]!.hasEnded;
    const again = await timepail.open("own-a", { worker });
    const count = await again.collection("c").countDocuments();
    const waiting = failure(() => again.collection("c").countDocuments());
    worker.terminate();
    const told = [await waiting, await failure(() => again.collection("c").countDocuments()), await failure(() => timepail.open("own-b", { worker }))];
    await again.close();
    return { heard, isLeft, count, told, workers: made.length };
  });
  const { told, ...others } = seen;
  assert.deepEqual(others, { heard: ["heard this"], isLeft: true, count: 1, workers: 1 });
  assert.match(told[0]!, /^WorkerError \| .*has ended; what was acknowledged is stored, .*with a function that makes workers, for one that was passed cannot be replaced$/);
  assert.equal(told[1], told[0]);
  assert.match(told[2]!, /^WorkerError \| .*"own-b" /);
  await p.close();
});

test("the entry that guesses no address takes that of the worker", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const entry = "/timepail/slim.js";
    const slim = (await import(entry)) as typeof import("../../src/entry/slim.js");
    const sources = { wasm: "/timepail/timepail.wasm", wasmMore: () => fetch("/timepail/timepail-more.wasm") };
    const db = await slim.open("slim", { ...sources, worker: "/timepail/worker.js" });
    const c = await db.createCollection("c", timeseries);
    await c.insertOne(row(7));
    const groups = await c.aggregate([{ $group: { _id: "$m", n: { $sum: "$n" } } }]).toArray();
    await db.close();
    const refused = await slim.open("slim", { ...sources, worker: true as never }).catch((error: Error) => [error.name, (error.cause as Error).message]);
    return { groups, refused, workers: made.length };
  });
  assert.deepEqual(seen, { groups: [{ _id: "m", n: 7 }], refused: ["WorkerError", "timepail/slim does not know where worker.js is"], workers: 1 });
  await p.close();
});

test("the journal of a worker that has ended is folded by the next one", async () => {
  const p = await page();
  const context = await p.evaluate(async () => {
    // Timers of one second run only when the test says so.
    const later: (() => void)[] = [];
    const { setTimeout } = globalThis;
    Object.assign(globalThis, { later, setTimeout: (work: () => void, ms: number) => (ms === 1000 ? later.push(work) : setTimeout(work, ms)) });
    const db = await timepail.open("orphaned", { worker: make });
    const c = await db.createCollection("c", timeseries);
    await c.insertMany(Array.from({ length: 50 }, (_, n) => row(n)));
    const { held } = await navigator.locks.query();
    const context = held!.map(({ name }) => name!).find((name) => name.startsWith("timepail:orphaned:"))!.slice(-16);
    /** How many keys of the storage name the context. */
    const records = async (): Promise<number> => {
      const opened = indexedDB.open("timepail:orphaned");
      const database = await new Promise<IDBDatabase>((resolve) => (opened.onsuccess = () => resolve(opened.result)));
      const asked = database.transaction("entries").objectStore("entries").getAllKeys();
      const keys = await new Promise<ArrayBuffer[]>((resolve) => (asked.onsuccess = () => resolve(asked.result as ArrayBuffer[])));
      database.close();
      return keys.filter((key) => Array.from(new Uint8Array(key), (byte) => byte.toString(16).padStart(2, "0")).join("").includes(context)).length;
    };
    Object.assign(globalThis, { db, records });
    // Run the timer of the opening now, which is too early to fold anything.
    later.forEach((work) => work());
    await db.command({ ping: 1 });
    const waiting = failure(() => c.countDocuments());
    made[0]!.terminate();
    await waiting;
    await c.insertOne(row(100));
    if ((await records()) === 0 || later.length !== 2) throw new Error("no record names the context, or nobody folds it");
    return context;
  });
  assert.match(context, /^[0-9a-f]{16}$/);
  const count = await p.evaluate(async () => {
    const { db, records, later } = globalThis as unknown as { db: Database; records: () => Promise<number>; later: (() => void)[] };
    later[1]!();
    while ((await records()) > 0);
    const count = await db.collection("c").countDocuments();
    await db.close();
    return count;
  });
  assert.equal(count, 51);
  await p.close();
});

/** Runs in a worker: after a number as a message and as many calls, the module traps; after "again" it does so in a timer. */
const TRAPPING = `
  const { instantiate } = WebAssembly;
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11];
  const { f: trap } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes))).exports;
  let left = Infinity;
  WebAssembly.instantiate = async (...args) => {
    const { exports } = await instantiate(...args);
    const wrap = ([name, value]) => [name, typeof value === "function" ? (...args) => (left-- > 0 ? value(...args) : trap()) : value];
    return { exports: Object.fromEntries(Object.entries(exports).map(wrap)) };
  };
  addEventListener("message", ({ data }) => {
    if (typeof data === "number") left = data;
    if (data !== "again") return;
    // Not the last call of its function: WebKit leaves that function off the stack then, and tells nobody which error it was.
    setTimeout(() => [trap()]);
    setTimeout(postMessage, 0, "trapped again");
  });
`;

before(() => writeFileSync(join(files, "trapping.js"), TRAPPING));

test("a trap ends the worker, and the next call starts another", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const worker = (): Worker => scripted(`import "${location.origin}/files/trapping.js"`, 'import "/timepail/worker.js"');
    const db = await timepail.open("trapped", { worker });
    const c = await db.createCollection("c", timeseries);
    await c.insertOne(row(0));
    const told = [];
    // The first call from outside traps, then one further in, which is nobody's.
    for (const after of [0, 3, 6]) {
      made.at(-1)!.postMessage(after);
      told.push(await failure(() => c.insertOne(row(1))));
      await c.insertOne(row(2));
    }
    const count = await c.countDocuments({ n: { $ne: 1 } });
    await db.close();
    return { told, count, workers: made.length, left: made.filter(({ hasEnded }) => !hasEnded).length };
  });
  for (const told of seen.told) assert.match(told, /^WorkerError \| {2}\| The worker of the database "trapped" has ended: .*(unreachable|Unreachable).*; what was acknowledged is stored/);
  assert.deepEqual([seen.count, seen.workers, seen.left], [4, 4, 0]);
  await p.close();
});

test("a worker that traps again after its page has let go of it is no error of the page", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const worker = scripted(`import "${location.origin}/files/trapping.js"`, 'import "/timepail/worker.js"');
    const db = await timepail.open("trapped-again", { worker });
    const c = await db.createCollection("c", timeseries);
    worker.postMessage(0);
    const told = await failure(() => c.insertOne(row(1)));
    const errors: string[] = [];
    worker.addEventListener("error", ({ message }) => errors.push(message));
    const answered = new Promise((resolve) => worker.addEventListener("message", resolve));
    worker.postMessage("again");
    await answered;
    worker.terminate();
    await db.close();
    return { told, errors };
  });
  assert.match(seen.told, /^WorkerError /);
  assert.deepEqual(seen.errors, []);
  await p.close();
});

test("a page without Web Locks, as over plain HTTP, learns of failures all the same", async () => {
  writeFileSync(join(files, "lockless.js"), 'Object.defineProperty(navigator, "locks", { value: undefined });');
  const p = await page();
  const seen = await p.evaluate(async () => {
    Object.defineProperty(navigator, "locks", { value: undefined });
    const imports = ["files/lockless.js", "files/trapping.js"].map((file) => `import "${location.origin}/${file}"`);
    const db = await timepail.open("lockless", { worker: () => scripted(...imports, 'import "/timepail/worker.js"') });
    const c = await db.createCollection("c", timeseries);
    await c.insertOne(row(0));
    made[0]!.postMessage(0);
    const told = await failure(() => c.insertOne(row(1)));
    const count = await c.countDocuments();
    await db.close();
    return { told, count, workers: made.length };
  });
  assert.match(seen.told, /^WorkerError \| .*has ended: .*nreachable/);
  assert.deepEqual([seen.count, seen.workers], [1, 2]);
  await p.close();
});

test("a worker that cannot be started says why and what to do, and the next open may succeed", async () => {
  const p = await page();
  writeFileSync(join(files, "page.js.html"), "<!doctype html>");
  writeFileSync(join(files, "other.js"), "export const other = 1;");
  const seen = await p.evaluate(async () => {
    const told = [
      await failure(() => timepail.open("startless", { worker: "/files/missing.js" })),
      await failure(() => timepail.open("startless", { worker: "/files/page.js.html" })),
      await failure(() => timepail.open("startless", { worker: "/files/other.js" })),
      await failure(() => timepail.open("startless", { worker: () => new Worker("/files/missing.js", { type: "module" }) })),
      await failure(() => timepail.open("startless", { worker: () => scripted("throw new Error('not today')") })),
    ];
    const db = await timepail.open("startless", { worker: true });
    await db.close();
    return { told, left: made.filter(({ hasEnded }) => !hasEnded).length };
  });
  for (const told of seen.told.slice(0, 3)) assert.match(told, /^WorkerError \| {2}\| http.*\/files\/.* cannot be loaded; serve the files of the package beside each other, or say where it is: open\(name, \{ worker: address \}\)$/);
  for (const told of seen.told.slice(3)) assert.match(told, /^WorkerError \| {2}\| The worker of the database "startless" cannot be started.*; its script must be served as JavaScript, and worker-src of a Content-Security-Policy must allow it$/);
  assert.match(seen.told[4]!, /started: .*not today/);
  assert.equal(seen.left, 0);
  await p.close();
});

test("what cannot be in a worker is refused", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const storage = { getMany: () => [], scan: () => [], commit: () => true };
    return [await failure(() => timepail.open("refused", { worker: true, storage })), await failure(() => timepail.open("refused", { worker: 7 as never })), await failure(() => timepail.open("refused", { worker: {} as never }))];
  });
  assert.match(seen[0]!, /^TypeError \| {2}\| A storage object cannot go to a worker: open the database in a worker of your own/);
  for (const told of seen.slice(1)) assert.match(told, /^TypeError \| {2}\| The option worker is true, an address, a Worker, or a function that makes one$/);
  await p.close();
});

test("a Content-Security-Policy that forbids workers is told", async () => {
  const meta = `<meta http-equiv="Content-Security-Policy" content="worker-src 'none'">`;
  writeFileSync(join(files, "strict.html"), readFileSync("test/browser/page/index.html", "utf8").replace("<title>", `${meta}<title>`));
  const p = await tab("files/strict.html");
  await p.evaluate(install);
  const told = await p.evaluate(() => failure(() => timepail.open("strict", { worker: true })));
  assert.match(told, /^WorkerError \| .*worker-src of a Content-Security-Policy must allow it$/);
  await p.close();
});

test("a page that is a file says that its worker cannot be loaded", { skip: BROWSER !== "chromium" && "drivers of others do not open files" }, async () => {
  const stdin = { contents: 'import * as timepail from "./dist/index.js"; globalThis.timepail = timepail;', resolveDir: process.cwd() };
  await build({ stdin, bundle: true, format: "iife", platform: "browser", outfile: join(files, "page.js"), logLevel: "silent" });
  writeFileSync(join(files, "file.html"), '<!doctype html><script src="page.js"></script>');
  const p = await running().newPage();
  await p.goto(`file://${files}/file.html`);
  await p.evaluate(install);
  assert.match(await p.evaluate(() => failure(() => timepail.open("file", { worker: true }))), /^WorkerError \| {2}\| worker\.js cannot be loaded/);
  await p.close();
});

test("the package may come from another origin than the page", async () => {
  const other: Server = createServer((request, response) => {
    const name = /^\/(worker\.js|timepail(?:-more)?\.wasm)$/.exec(request.url!)?.[1];
    if (!name) return void response.writeHead(404).end();
    response.writeHead(200, { "access-control-allow-origin": "*", "content-type": name.endsWith(".js") ? "text/javascript" : "application/wasm" });
    response.end(readFileSync(`dist/${name}`));
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const p = await page();
  try {
    const origin = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const count = await p.evaluate(async (origin) => {
      const db = await timepail.open("foreign", { worker: `${origin}/worker.js`, wasm: `${origin}/timepail.wasm`, wasmMore: `${origin}/timepail-more.wasm` });
      const c = await db.createCollection("c", timeseries);
      await c.insertOne(row(0));
      const count = await c.countDocuments();
      await db.close();
      return count;
    }, origin);
    assert.equal(count, 1);
  } finally {
    await p.close();
    other.close();
  }
});

test("answers that are on their way when the database is closed arrive", async () => {
  const p = await page();
  const seen = await p.evaluate(async () => {
    const db = await timepail.open("closing", { worker: true });
    const c = await db.createCollection("c", timeseries);
    await c.insertMany(Array.from({ length: 1000 }, (_, n) => row(n)));
    const waiting = Promise.allSettled([c.countDocuments(), c.find().toArray(), c.insertOne(row(5000))]);
    await db.close();
    const settled = (await waiting).map(({ status, ...more }) => (status === "fulfilled" ? status : (more as { reason: Error }).reason.name));
    return { settled, after: await failure(() => c.countDocuments()), ended: made[0]!.hasEnded };
  });
  for (const one of seen.settled) assert.match(one, /^(fulfilled|ClosedError|ServerError)$/);
  assert.match(seen.after, /^ClosedError/);
  assert.equal(seen.ended, true);
  await p.close();
});

test("another tab and the page's own listeners hear of what a worker has stored, and its journal is known to be alive", async () => {
  const [a, b] = [await page(), await page()];
  await b.evaluate(async () => {
    const db = await timepail.open("heard", { worker: true });
    const heard: unknown[] = [];
    db.on("change", (change) => heard.push(change));
    Object.assign(globalThis, { heard });
  });
  const own = await a.evaluate(async () => {
    const db = await timepail.open("heard", { worker: true });
    const heard: unknown[] = [];
    db.on("change", (change) => heard.push(change));
    const c = await db.createCollection("c", timeseries);
    await c.insertOne(row(0));
    Object.assign(globalThis, { db });
    const { held } = await navigator.locks.query();
    return { heard, held: held!.filter(({ name }) => name!.startsWith("timepail:heard:")).length };
  });
  assert.deepEqual(own, { heard: [{ operation: "create", local: true, collection: "c" }, { operation: "insert", local: true, collection: "c", count: 1 }], held: 2 });
  await b.waitForFunction(() => (globalThis as unknown as { heard: { operation: string }[] }).heard.some(({ operation }) => operation === "insert"));
  await a.evaluate(async () => (globalThis as unknown as { db: Database }).db.close());
  // The lock is free soon after.
  await a.evaluate(async () => {
    while ((await navigator.locks.query()).held!.filter(({ name }) => name!.startsWith("timepail:heard:")).length > 1);
  });
  await Promise.all([a.close(), b.close()]);
});

test("no page reported an unexpected error", () => {
  // Firefox reports an error to the page for each script that it does not load.
  const isExpected = (error: string): boolean => / was blocked | blocked a worker script/.test(error);
  assert.deepEqual(errors.filter((error) => !isExpected(error)), []);
});

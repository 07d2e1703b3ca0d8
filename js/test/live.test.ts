// Live queries over a fake engine: when they compute, what subscribers get, and how they end.

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Binary, Long, type Document } from "bson";
import { combineLatest, firstValueFrom, from, map } from "rxjs";
import { derived, get } from "svelte/store";
import type { Collection } from "../src/collection.ts";
import { openWith, type Database } from "../src/database.ts";
import { ServerError } from "../src/errors.ts";
import { documentsToBlock } from "../src/pivot.ts";
import { FakeEngine } from "./fake-engine.ts";

/** Runs everything that does not wait for a timer. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

interface Opened {
  engine: FakeEngine;
  db: Database;
  c: Collection;
  /** Advances the clock, which stands still otherwise. */
  tick: (ms: number) => Promise<void>;
  /** The number of commands with that name. */
  count: (name: string) => number;
  /** Inserts one measurement with this value. */
  insert: (v: number) => Promise<unknown>;
}

async function opened(t: TestContext, storage: unknown = "memory"): Promise<Opened> {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const engine = new FakeEngine();
  const db = await openWith(async () => engine, "plant", { storage: storage as "memory" });
  const c = db.collection("c");
  return {
    engine,
    db,
    c,
    tick: async (ms) => {
      await rest();
      t.mock.timers.tick(ms);
      await rest();
    },
    count: (name) => engine.commands.filter((command) => name in command).length,
    insert: (v) => c.insertMany([{ at: new Date(v), v }]),
  };
}

/** A storage that others may write to; the fake engine does not use it. */
const SHARED = { getMany: () => [], scan: () => [], commit: () => "committed" };

const values = (rows: Document[]): unknown[] => rows.map((row) => row["v"]);

/** The calls of a subscriber, in order. */
function listener(): { heard: unknown[]; next: (rows: Document[]) => void; error: (error: unknown) => void; complete: () => void } {
  const heard: unknown[] = [];
  return { heard, next: (rows) => heard.push(values(rows)), error: (error) => heard.push((error as Error).message), complete: () => heard.push("end") };
}

test("a subscriber gets the result, and again after each change", async (t) => {
  const { c, db, insert, tick } = await opened(t);
  await insert(1);
  const { heard, next } = listener();
  const stop = c.find().live().subscribe(next);
  await tick(16);
  await insert(2);
  await tick(16);
  await c.deleteMany({ v: 1 });
  await tick(16);
  await db.collection("other").insertOne({ at: new Date(), v: 9 });
  await tick(16);
  assert.deepEqual(heard, [[1], [1, 2], [2]]);
  stop();
});

test("nothing is asked without a subscriber", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  const live = c.find().live();
  await insert(1);
  await tick(16);
  assert.deepEqual([count("find"), live.current], [0, undefined]);
  const stop = live.subscribe(() => {});
  await tick(16);
  stop();
  await rest();
  await insert(2);
  await tick(10_000);
  assert.deepEqual([count("find"), values(live.current!)], [1, [1]]);
  const { heard, next } = listener();
  live.subscribe(next)();
  live.subscribe(next);
  await tick(16);
  assert.deepEqual([heard, count("find")], [[[1, 2]], 2], "what was computed for others is not given as news");
});

test("a subscriber that comes later gets the last result at once, and unsubscribing twice is harmless", async (t) => {
  const { c, insert, tick } = await opened(t);
  await insert(1);
  const live = c.find().live();
  live.subscribe(() => {});
  await tick(16);
  const { heard, next } = listener();
  const stop = live.subscribe(next);
  assert.deepEqual(heard, [[1]]);
  stop();
  stop.unsubscribe();
  await insert(2);
  await tick(16);
  assert.deepEqual([heard, values(live.current!)], [[[1]], [1, 2]]);
});

test("one computation runs at a time, and changes during it lead to one more", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  let release = (): void => {};
  let running = 0;
  let most = 0;
  const run = engine.run_command.bind(engine);
  engine.run_command = async (command, payload) => {
    const answer = await run(command, payload);
    if (!("find" in engine.commands.at(-1)!)) return answer;
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => (release = resolve));
    running--;
    return answer;
  };
  const { heard, next } = listener();
  c.find().live().subscribe(next);
  await rest();
  for (const v of [1, 2, 3]) await insert(v);
  assert.equal(count("find"), 1);
  release();
  await tick(16);
  assert.equal(count("find"), 2);
  release();
  await tick(16);
  assert.deepEqual([heard, most, count("find")], [[[], [1, 2, 3]], 1, 2]);
});

test("a computation waits until throttleMS have passed since the last one", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  c.find().live({ throttleMS: 100 }).subscribe(() => {});
  await tick(0);
  for (let v = 0; v < 9; v++) {
    await insert(v);
    await tick(11);
  }
  assert.equal(count("find"), 1);
  await tick(1);
  assert.equal(count("find"), 2);
  await tick(1000);
  await insert(10);
  await rest();
  assert.equal(count("find"), 3, "after a while without changes, nothing waits");
});

test("a result like the last one is not given again", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  await insert(1);
  const { heard, next } = listener();
  const live = c.find({ v: 1 }).live();
  live.subscribe(next);
  await tick(16);
  const first = live.current;
  await insert(2);
  await tick(16);
  assert.deepEqual([heard, count("find")], [[[1]], 2]);
  assert.equal(live.current, first);
});

test("an error ends the subscriptions, and the next one tries again", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  const live = c.find().live();
  const { heard, ...observer } = listener();
  live.subscribe(observer);
  await tick(16);
  engine.intercept = (command) => ("find" in command ? { ok: 0, code: 292, errmsg: "no memory" } : undefined);
  await insert(1);
  await tick(16);
  await insert(2);
  await tick(16);
  assert.deepEqual(heard, [[], "no memory"]);
  engine.intercept = () => undefined;
  live.subscribe(observer);
  await tick(16);
  assert.deepEqual(heard, [[], "no memory", [1, 2]]);
});

test("an error that nobody wants, and one that a subscriber throws, are reported and stop nobody else", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  const queued: (() => void)[] = [];
  t.mock.method(globalThis, "queueMicrotask", (callback: () => void) => void queued.push(callback));
  const live = c.find().live();
  const { heard, next } = listener();
  live.subscribe(() => {
    throw new Error("of a subscriber");
  });
  live.subscribe(next);
  await tick(16);
  assert.deepEqual(heard, [[]]);
  assert.throws(() => queued.splice(0).forEach((callback) => callback()), /of a subscriber/);
  engine.intercept = (command) => ("find" in command ? { ok: 0, code: 292, errmsg: "no memory" } : undefined);
  await insert(1);
  await tick(16);
  assert.equal(queued.length, 2);
  assert.throws(() => queued[1]!(), /no memory/);
});

test("a dropped collection has an empty result, and one that is made anew goes on", async (t) => {
  const { c, db, insert, tick } = await opened(t);
  await insert(1);
  const { heard, ...observer } = listener();
  c.find().live().subscribe(observer);
  await tick(16);
  await c.drop();
  await tick(16);
  await db.createCollection("c", { timeseries: { timeField: "at" } });
  await insert(2);
  await tick(16);
  await db.dropDatabase();
  await tick(16);
  assert.deepEqual(heard, [[1], [], [2]]);
});

test("closing the live query completes its subscribers, and those that come later", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  const live = c.find().live();
  const { heard, ...observer } = listener();
  live.subscribe(observer);
  await tick(16);
  live.close();
  await insert(1);
  await tick(16);
  live.subscribe(observer);
  await tick(16);
  assert.deepEqual([heard, count("find"), live.current], [[[], "end", "end"], 1, []]);
});

test("closing the database completes the subscribers, also during a computation", async (t) => {
  for (const waits of [true, false]) {
    t.mock.timers.reset();
    const { c, db, tick } = await opened(t);
    const live = c.find().live();
    const { heard, ...observer } = listener();
    live.subscribe(observer);
    if (waits) await tick(16);
    await db.close();
    await tick(16);
    assert.equal(heard.at(-1), "end");
    assert.equal(heard.filter((each) => each === "end").length, 1);
    live.subscribe(observer);
    await rest();
    assert.equal(heard.filter((each) => each === "end").length, 2);
  }
});

test("a subscriber may end its own subscription and that of another while it is called", async (t) => {
  const { c, insert, tick } = await opened(t);
  const live = c.find().live();
  const { heard, next } = listener();
  const stop = live.subscribe((rows) => {
    next(rows);
    stop();
    other();
  });
  const other = live.subscribe(() => assert.fail("it was ended before its turn"));
  await tick(16);
  await insert(1);
  await tick(16);
  assert.deepEqual(heard, [[]]);
});

test("a slow reader of the loop gets the newest result, and leaving the loop ends the subscription", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  const read: unknown[] = [];
  const loop = (async () => {
    for await (const rows of c.find().live()) {
      read.push(values(rows));
      if (read.length === 1) for (const v of [1, 2, 3]) void (await insert(v), await tick(16));
      if (read.length === 2) break;
    }
  })();
  await tick(16);
  await loop;
  assert.deepEqual(read, [[], [1, 2, 3]]);
  const asked = count("find");
  await insert(4);
  await tick(16);
  assert.equal(count("find"), asked);
});

test("a loop ends with the live query, throws its error, and can be left while it waits", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  const live = c.find().live();
  const iterator = live[Symbol.asyncIterator]();
  const first = iterator.next();
  await tick(16);
  assert.deepEqual(await first, { done: false, value: [] });
  const waiting = iterator.next();
  await rest();
  assert.deepEqual(await iterator.return!(), { done: true, value: undefined });
  assert.deepEqual([await waiting, await iterator.next()], [{ done: true, value: undefined }, { done: true, value: undefined }]);
  await insert(1);
  await tick(16);
  assert.equal(count("find"), 1);

  const closed = (async () => {
    let results = 0;
    for await (const rows of live) results += rows.length && 1;
    return results;
  })();
  await tick(16);
  live.close();
  assert.equal(await closed, 1);

  engine.intercept = (command) => ("find" in command ? { ok: 0, code: 292, errmsg: "no memory" } : undefined);
  const failing = c.find().live()[Symbol.asyncIterator]();
  await assert.rejects(failing.next(), /no memory/);
  assert.deepEqual(await failing.next(), { done: true, value: undefined });
});

test("RxJS takes it as an Observable", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  await insert(1);
  const live = c.find().live();
  const first = firstValueFrom(from(live));
  await tick(16);
  assert.deepEqual(values(await first), [1]);
  const heard: unknown[] = [];
  const subscription = combineLatest([from(live), from(live).pipe(map((rows) => rows.length))]).subscribe({
    next: ([rows, length]) => heard.push([values(rows), length]),
    complete: () => heard.push("end"),
  });
  await tick(16);
  await insert(2);
  await tick(16);
  assert.deepEqual(heard, [[[1], 1], [[1, 2], 1], [[1, 2], 2]]);
  subscription.unsubscribe();
  await rest();
  const asked = count("find");
  await insert(3);
  await tick(16);
  assert.equal(count("find"), asked);
});

test("Svelte takes it as a store", async (t) => {
  const { c, insert, tick } = await opened(t);
  await insert(1);
  const live = c.find().live();
  const heard: unknown[] = [];
  const stop = derived(live, (rows) => (rows as Document[] | undefined)?.length).subscribe((length) => heard.push(length));
  await tick(16);
  await insert(2);
  await tick(16);
  assert.deepEqual([heard, values(get(live))], [[undefined, 1, 2], [1, 2]]);
  stop();
});

test("results are columns if that was asked for, and map() applies to documents", async (t) => {
  const { c, insert, tick } = await opened(t);
  await insert(1);
  const columns = c.find().live({ columns: true });
  const mapped = c.find().map((row) => `v${row["v"]}`).live();
  columns.subscribe(() => {});
  mapped.subscribe(() => {});
  await tick(16);
  assert.deepEqual([columns.current, mapped.current], [{ at: Float64Array.of(1), v: Float64Array.of(1) }, ["v1"]]);
  assert.throws(() => c.find().live({ throttle: 3 } as object), /did you mean "throttleMS"/);
});

test("what others write without a message is found within a second, and not in memory, where nobody else writes", async (t) => {
  for (const [storage, expected] of [[SHARED, [[], [7]]], ["memory", [[]]]] as const) {
    t.mock.timers.reset();
    const { c, engine, tick } = await opened(t, storage);
    const { heard, next } = listener();
    c.find().live().subscribe(next);
    await tick(16);
    engine.collections.set("c", [{ at: new Date(7), v: 7 }]);
    // Fewer would suffice if the first reply took no time.
    await tick(2000);
    assert.deepEqual(heard, expected);
  }
});

test("many live queries together look for lost changes fifty times a second", async (t) => {
  const { c, tick, count } = await opened(t, SHARED);
  t.mock.method(performance, "now", () => 0);
  for (let n = 0; n < 200; n++) c.find({ v: n }).live({ throttleMS: 0 }).subscribe(() => {});
  await tick(0);
  assert.equal(count("find"), 200);
  await tick(3999);
  assert.equal(count("find"), 200);
  await tick(1);
  assert.equal(count("find"), 400);
});

test("a hidden page asks for nothing by itself, and at once when it is shown or comes back", async (t) => {
  const { c, insert, tick, count } = await opened(t, SHARED);
  const document = Object.assign(new EventTarget(), { visibilityState: "hidden" });
  const window = new EventTarget();
  const globals = { document, addEventListener: window.addEventListener.bind(window), removeEventListener: window.removeEventListener.bind(window) };
  Object.assign(globalThis, globals);
  t.after(() => Object.keys(globals).forEach((name) => Reflect.deleteProperty(globalThis, name)));
  const stop = c.find().live().subscribe(() => {});
  await tick(10_000);
  assert.equal(count("find"), 1);
  document.dispatchEvent(new Event("visibilitychange"));
  await tick(16);
  assert.equal(count("find"), 1);
  await insert(1);
  await tick(16);
  assert.equal(count("find"), 2, "what it hears of it still follows");
  document.visibilityState = "visible";
  const events: [EventTarget, string][] = [[document, "visibilitychange"], [document, "resume"], [window, "pageshow"]];
  for (const [n, [target, name]] of events.entries()) {
    target.dispatchEvent(new Event(name));
    await tick(16);
    assert.equal(count("find"), 3 + n, name);
  }
  stop();
  await rest();
  for (const [target, name] of events) target.dispatchEvent(new Event(name));
  await tick(16);
  assert.equal(count("find"), 5);
});

test("collections that stages read count as well, and buckets under their own name", async (t) => {
  const { db, c, engine, tick, count } = await opened(t);
  engine.intercept = (command) => ("aggregate" in command ? { ok: 1, cursor: { id: 0, ns: "plant.c", firstBatch: [] } } : undefined);
  c.aggregate([
    { $lookup: { from: "a", pipeline: [{ $unionWith: "b" }], as: "x" } },
    { $facet: { one: [{ $unionWith: { coll: "d", pipeline: [{ $graphLookup: { from: "e" } }] } }] } },
  ])
    .live()
    .subscribe(() => {});
  await tick(16);
  for (const [n, name] of ["a", "b", "c", "d", "e", "system.buckets.e"].entries()) {
    await db.collection(name).insertOne({ at: new Date() });
    await tick(16);
    assert.equal(count("aggregate"), n + 2, name);
  }
  await db.collection("x").insertOne({ at: new Date() });
  await tick(16);
  assert.equal(count("aggregate"), 7);
});

test("a pipeline that writes is refused", async (t) => {
  const { c, count } = await opened(t);
  for (const stage of [{ $out: "d" }, { $merge: "d" }]) {
    await assert.rejects(c.aggregate([stage]).live()[Symbol.asyncIterator]().next(), /cannot write/);
  }
  assert.equal(count("aggregate"), 0);
});

interface Followed {
  query: Document;
  last?: string;
  /** True if a change makes the query run again, which takes a `liveRefresh` for this query alone. */
  isFresh?: boolean;
}

/** Adds the commands for live queries to the fake engine; `forget` makes it lose its live queries. */
function taught(engine: FakeEngine): { forget: () => void; followed: Map<number, Followed> } {
  const followed = new Map<number, Followed>();
  let ids = 0;
  const rowsOf = ({ query: { find, filter } }: Followed): Document[] =>
    (engine.collections.get(find) ?? []).filter((row) => Object.entries(filter as Document).every(([key, value]) => row[key] === value));
  const told = (id: number): Document[] => {
    const entry = followed.get(id);
    if (!entry) return [{ id }];
    const rows = rowsOf(entry);
    const now = JSON.stringify(rows);
    if (now === entry.last) return [];
    if (entry.isFresh) return [{ id }];
    entry.last = now;
    return [{ id, cursor: { id: 0, ns: `plant.${entry.query["find"]}` }, block: new Binary(documentsToBlock(rows)!) }];
  };
  engine.intercept = (command) => {
    if ("liveQuery" in command) {
      followed.set(++ids, { query: command["query"] as Document });
      return { ok: 1, id: ids, mode: "newRows", why: "a find by time" };
    }
    if ("liveClose" in command) return { ok: Number(followed.delete(command["liveClose"] as number)) };
    if (!("liveRefresh" in command)) return undefined;
    if (Array.isArray(command["liveRefresh"])) return { ok: 1, live: command["liveRefresh"].flatMap(told) };
    const entry = followed.get(command["liveRefresh"] as number);
    if (!entry) return { ok: 0, code: 43, codeName: "CursorNotFound", errmsg: "no such live query" };
    const { find } = entry.query as { find: string };
    const rows = rowsOf(entry);
    const now = JSON.stringify(rows);
    const live = { changed: now !== entry.last, how: entry.last === undefined ? "fresh" : now === entry.last ? "nothing" : "newRows" };
    entry.last = now;
    if (!live.changed) return { ok: 1, live, cursor: { id: 0, ns: `plant.${find}`, firstBatch: [] } };
    // Two rows per batch, whatever was requested.
    const id = rows.length > 2 ? 1000 + ids : 0;
    if (id) engine.cursors.set(id, { name: find, rest: rows.slice(2) });
    return { ok: 1, live, cursor: { id: Long.fromNumber(id), ns: `plant.${find}`, firstBatch: [] }, rows: rows.slice(0, 2) };
  };
  return { followed, forget: () => followed.clear() };
}

test("an engine that follows queries is asked for what has changed, batch after batch", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  const { followed } = taught(engine);
  const { heard, next } = listener();
  const live = c.find({ kind: 1 }).live();
  const stop = live.subscribe(next);
  await tick(16);
  await c.insertMany([1, 2, 3, 4, 5].map((v) => ({ at: new Date(v), v, kind: 1 })));
  await tick(16);
  await insert(6);
  await tick(16);
  assert.deepEqual(heard, [[], [1, 2, 3, 4, 5]]);
  assert.deepEqual([count("liveQuery"), count("liveRefresh"), count("find")], [1, 3, 0]);
  const opening = engine.commands.find((command) => "liveQuery" in command)!;
  assert.deepEqual([opening["query"], opening["$db"]], [{ find: "c", filter: { kind: 1 }, batchSize: 65_536 }, "plant"]);
  assert.deepEqual(await live.explain(), { mode: "newRows", why: "a find by time", how: "nothing", asked: 3, computed: 2, delivered: 2 });
  stop();
  await rest();
  assert.equal(followed.size, 0);
  live.subscribe(next);
  await tick(16);
  assert.deepEqual(heard.at(-1), [1, 2, 3, 4, 5]);
});

test("a time limit and a signal hold for each command of a live query, and are no part of what the engine follows", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  taught(engine);
  const controller = new AbortController();
  const { heard, ...observer } = listener();
  c.find({}, { signal: controller.signal, maxTimeMS: 50 }).live().subscribe(observer);
  await tick(16);
  await insert(1);
  await tick(16);
  const sent = engine.commands.filter((command) => "liveQuery" in command || "liveRefresh" in command);
  assert.deepEqual(sent.map(({ query, signal, maxTimeMS }) => [query, signal, maxTimeMS]), [
    [{ find: "c", filter: {}, batchSize: 65_536 }, undefined, 50],
    [undefined, undefined, 50],
    [undefined, undefined, 50],
  ]);
  assert.ok(sent.every(({ opKey }) => opKey > 0));
  controller.abort(new Error("enough"));
  await insert(2);
  await tick(16);
  assert.deepEqual(heard, [[], [1], "enough"]);
});

test("columns come from an engine that follows queries, too", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  taught(engine);
  const live = c.find().live({ columns: true });
  live.subscribe(() => {});
  for (const v of [1, 2, 3]) await insert(v);
  await tick(16);
  await insert(1);
  await tick(16);
  assert.deepEqual(live.current, { at: Float64Array.of(1, 2, 3, 1), v: Float64Array.of(1, 2, 3, 1) });
});

test("an engine that has forgotten the query is told it anew", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  const { forget, followed } = taught(engine);
  const { heard, ...observer } = listener();
  c.find().live().subscribe(observer);
  await tick(16);
  forget();
  await insert(1);
  await tick(16);
  assert.deepEqual([heard, count("liveQuery")], [[[], [1]], 2]);
  // An engine that always forgets causes an error, not an endless loop.
  const { intercept } = engine;
  engine.intercept = (command) => (forget(), intercept(command));
  await insert(2);
  await tick(16);
  assert.deepEqual([heard.at(-1), count("liveQuery"), followed.size], ["no such live query", 4, 0]);
});

test("a worker that has died is asked again, and the query followed anew", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  taught(engine);
  const { heard, ...observer } = listener();
  c.find().live().subscribe(observer);
  await tick(16);
  const run = engine.run_command.bind(engine);
  let dies = 1;
  engine.run_command = async (command, payload) => {
    const answer = await run(command, payload);
    if ("liveRefresh" in engine.commands.at(-1)! && dies-- > 0) throw Object.assign(new Error("the worker has ended"), { name: "WorkerError" });
    return answer;
  };
  await insert(1);
  await tick(16);
  assert.deepEqual([heard, count("liveQuery")], [[[], [1]], 2]);
  dies = Infinity;
  await insert(2);
  await tick(16);
  assert.deepEqual(heard.at(-1), "the worker has ended");
});

test("a result that the engine has computed again and that is the same is not given again", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  engine.intercept = (command) => {
    if ("liveQuery" in command) return { ok: 1, id: 1, mode: "fresh", why: "" };
    if (Array.isArray(command["liveRefresh"])) return { ok: 1, live: [{ id: 1 }] };
    return "liveRefresh" in command ? { ok: 1, live: { changed: true, how: "fresh" }, cursor: { id: 0, ns: "plant.c", firstBatch: [] }, rows: [{ v: 7 }] } : undefined;
  };
  const { heard, next } = listener();
  c.find().live().subscribe(next);
  await tick(16);
  await insert(1);
  await tick(16);
  // Three refreshes: the first one, one for all queries, and one for this query alone, because it has to run again.
  assert.deepEqual([heard, count("liveRefresh")], [[[7]], 3]);
});

test("where the second half of the module cannot be loaded, the query runs again", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  const run = engine.run_command.bind(engine);
  engine.run_command = async (command, payload) => {
    const answer = await run(command, payload);
    if ("liveQuery" in engine.commands.at(-1)!) throw Object.assign(new Error("no network"), { name: "LoadError" });
    return answer;
  };
  const { heard, next } = listener();
  c.find().live().subscribe(next);
  await tick(16);
  await insert(1);
  await tick(16);
  assert.deepEqual([heard, count("find"), count("liveQuery")], [[[], [1]], 2, 1]);
});

test("after a result that was not read to its end, the engine is told the query anew", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  const { followed } = taught(engine);
  const { heard, ...observer } = listener();
  // A query with a time limit has a `liveRefresh` of its own, with batches.
  const live = c.find({}, { maxTimeMS: 1000 }).live();
  live.subscribe(observer);
  await tick(16);
  const { intercept } = engine;
  engine.intercept = (command) => ("getMore" in command ? { ok: 0, code: 96, errmsg: "storage" } : intercept(command));
  for (const v of [1, 2, 3]) await insert(v);
  await tick(16);
  assert.deepEqual([heard.at(-1), followed.size], ["storage", 0]);
  engine.intercept = intercept;
  live.subscribe(observer);
  await tick(16);
  assert.deepEqual(heard.at(-1), [1, 2, 3]);
});

test("an engine without these commands is asked once, and explain() says so", async (t) => {
  const { c, insert, tick, count } = await opened(t);
  const live = c.find().live();
  live.subscribe(() => {});
  await tick(16);
  await insert(1);
  await tick(16);
  assert.deepEqual([count("liveQuery"), count("liveRefresh"), count("find")], [1, 0, 2]);
  const { mode, how } = await live.explain();
  assert.deepEqual([mode, how], ["fresh", "fresh"]);
});

test("explain() of a query that nobody follows leaves nothing behind in the engine", async (t) => {
  const { c, engine, count } = await opened(t);
  const { followed } = taught(engine);
  assert.deepEqual(await c.find().live().explain(), { mode: "newRows", why: "a find by time", asked: 0, computed: 0, delivered: 0 });
  await rest();
  assert.deepEqual([followed.size, count("liveRefresh")], [0, 0]);
});

test("explain() beside the first computation has the query followed once, and nothing is left at the end", async (t) => {
  const { c, engine, tick, count } = await opened(t);
  const { followed } = taught(engine);
  const live = c.find().live();
  const stop = live.subscribe(() => {});
  const explained = await Promise.all([live.explain(), live.explain()]);
  await tick(16);
  assert.deepEqual([explained.map(({ mode }) => mode), count("liveQuery"), followed.size], [["newRows", "newRows"], 1, 1]);
  stop();
  await rest();
  assert.equal(followed.size, 0);
});

test("an error of the engine keeps its class and code", async (t) => {
  const { c, engine } = await opened(t);
  engine.intercept = (command) => ("liveQuery" in command ? { ok: 0, code: 2, codeName: "BadValue", errmsg: "unknown operator: $nope" } : undefined);
  const failed = c.find({ v: { $nope: 1 } }).live()[Symbol.asyncIterator]().next();
  await assert.rejects(failed, (error: unknown) => error instanceof ServerError && error.code === 2);
});

/** The values of `liveRefresh` that the engine has received: a number, or a list of numbers. */
const asked = (engine: FakeEngine): unknown[] => engine.commands.filter((command) => "liveRefresh" in command).map((command) => command["liveRefresh"] as unknown);

test("live queries that hear of one change are asked for in one command, and each gets its own result", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  const { followed } = taught(engine);
  const heard = [0, 1, 2, 3].map((v) => {
    const { heard, ...observer } = listener();
    (v === 3 ? c.find({ v: 1 }, { maxTimeMS: 9 }) : c.find({ v })).live().subscribe(observer);
    return heard;
  });
  const columns: unknown[] = [];
  c.find({ v: 2 }).live({ columns: true }).subscribe((result) => columns.push(result));
  await tick(16);
  const [none, one, two] = [...followed.keys()];
  followed.get(two!)!.isFresh = true;
  engine.commands = [];
  await c.insertMany([1, 2].map((v) => ({ at: new Date(v), v })));
  await tick(16);
  assert.deepEqual(heard, [[[]], [[], [1]], [[], [2]], [[], [1]]]);
  assert.deepEqual(columns.at(-1), { at: Float64Array.of(2), v: Float64Array.of(2) });
  const together = asked(engine).find(Array.isArray) as number[];
  const [alone, ...again] = asked(engine).filter((id) => !Array.isArray(id));
  assert.deepEqual([again, together.length, together.includes(alone as number)], [[two], 4, false], "one with a limit is asked for by itself, and one that runs again once more");
  assert.deepEqual(together.slice(0, 3), [none, one, two]);
  assert.equal(engine.commands.find((command) => command["liveRefresh"] === alone)!["maxTimeMS"], 9);
  engine.commands = [];
  await insert(7);
  await tick(16);
  assert.deepEqual([asked(engine).length, heard.flat().length], [2, 7], "what holds is not given again");
});

test("while changes go on, live queries that pause equally long are asked for together", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  taught(engine);
  const stops = [0, 1, 2].map((v) => c.find({ v }).live().subscribe(() => {}));
  c.find().live({ throttleMS: 100 }).subscribe(() => {});
  await tick(100);
  engine.commands = [];
  for (let v = 0; v < 40; v++) {
    await insert(v);
    await tick(4);
  }
  const sizes = asked(engine).map((ids) => (Array.isArray(ids) ? ids.length : 1));
  // Four at once, then three every sixteen milliseconds, and the other one every hundred.
  assert.deepEqual([sizes[0], sizes.filter((size) => size === 3).length, sizes.filter((size) => size === 1).length, sizes.length], [4, 10, 1, 12]);
  stops[1]!();
  await tick(100);
  await tick(100);
  engine.commands = [];
  await insert(100);
  await tick(16);
  assert.deepEqual(asked(engine).map((ids) => (ids as unknown[]).length), [3]);
});

test("whether results still hold is asked together, too", async (t) => {
  // The time until the next refresh depends on how long the last one took.
  t.mock.method(performance, "now", () => 0);
  const { c, engine, tick } = await opened(t, SHARED);
  taught(engine);
  const stop = c.find({ v: 0 }).live().subscribe(() => {});
  for (const v of [1, 2]) c.find({ v }).live().subscribe(() => {});
  await tick(16);
  engine.commands = [];
  await tick(2000);
  const ids = asked(engine);
  assert.ok(ids.length > 0 && ids.every((some) => (some as unknown[]).length === 3), JSON.stringify(ids));
  stop();
  await tick(16);
  engine.commands = [];
  await tick(2000);
  assert.ok(asked(engine).length > 0 && asked(engine).every((some) => (some as unknown[]).length === 2));
});

test("live queries that began at different times check together whether their results still hold", async (t) => {
  t.mock.method(performance, "now", () => 0);
  const { c, engine, tick } = await opened(t, SHARED);
  taught(engine);
  for (const v of [0, 1, 2]) {
    c.find({ v }).live().subscribe(() => {});
    await tick(200);
  }
  for (let ms = 0; ms < 1500; ms += 100) await tick(100);
  engine.commands = [];
  for (let ms = 0; ms < 3000; ms += 100) await tick(100);
  const ids = asked(engine);
  assert.ok(ids.length > 1 && ids.every((some) => (some as unknown[]).length === 3), JSON.stringify(ids));
});

test("live queries that are due while a command is under way are asked for together in the next one", async (t) => {
  const { c, engine, insert, tick } = await opened(t);
  taught(engine);
  for (const v of [0, 1, 2, 3]) c.find({ v }).live({ throttleMS: v }).subscribe(() => {});
  await tick(16);
  const run = engine.run_command.bind(engine);
  let answer: (() => void) | undefined;
  engine.run_command = async (command, payload) => {
    const result = await run(command, payload);
    if ("liveRefresh" in engine.commands.at(-1)! && !answer) await new Promise<void>((resolve) => (answer = resolve));
    return result;
  };
  engine.commands = [];
  await insert(1);
  await insert(2);
  // Each of them has another pause, and so its own timer.
  for (let ms = 0; ms < 8; ms++) await tick(1);
  const before = asked(engine).length;
  answer!();
  await tick(16);
  assert.deepEqual([before, (asked(engine)[0] as unknown[]).length], [1, 4]);
  assert.ok(asked(engine).slice(1).every((ids) => (ids as unknown[]).length > 1), JSON.stringify(asked(engine)));
});

test("what is wrong with one of many is its own error, and one that the engine has forgotten is told anew", async (t) => {
  const { c, engine, insert, tick, count } = await opened(t);
  const { followed } = taught(engine);
  const heard = [0, 1, 2].map((v) => {
    const { heard, ...observer } = listener();
    c.find({ v }).live().subscribe({ ...observer, error: (error) => heard.push(error) });
    return heard;
  });
  await tick(16);
  const [first, second] = [...followed.keys()];
  followed.delete(first!);
  const { intercept } = engine;
  engine.intercept = (command) => {
    if (command["liveRefresh"] === second) return { ok: 0, code: 292, codeName: "QueryExceededMemoryLimitNoDiskUseAllowed", errmsg: "no memory" };
    const reply = intercept(command);
    if (Array.isArray(command["liveRefresh"])) reply!["live"].push({ id: second });
    return reply;
  };
  await c.insertMany([{ at: new Date(0), v: 0 }, { at: new Date(2), v: 2 }]);
  await tick(16);
  const error = heard[1]!.at(-1);
  assert.ok(error instanceof ServerError && error.code === 292 && error.message === "no memory");
  assert.deepEqual([heard[0], heard[2], count("liveQuery")], [[[], [0]], [[], [2]], 4]);
  engine.intercept = (command) => ("liveRefresh" in command ? { ok: 0, code: 8, errmsg: "all of it" } : intercept(command));
  await insert(9);
  await tick(16);
  assert.deepEqual([heard[0]!.at(-1), heard[2]!.at(-1)].map((error) => (error as Error).message), ["all of it", "all of it"]);
});

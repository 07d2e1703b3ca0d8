// Deno KV: one prefix of a shared file per store.

import process from "node:process";
import type { HostStorage, StorageChange } from "timepail";
import { denoKvStorage, type DenoKv } from "timepail/deno-kv";
import type { Step } from "./end-to-end.ts";
import { failure, same } from "./expect.ts";
import { main } from "./run.ts";

declare const Deno: { openKv(path: string): Promise<DenoKv & { close(): void }> };

const openKv = () => Deno.openKv(`${process.env["STATE"]}/kv.db`);
const key = (number: number): Uint8Array => Uint8Array.of(number >> 8, number);
const EVERYTHING = [new Uint8Array(), new Uint8Array(3).fill(255)] as const;

/** The number of keys of each kind: entries, parts, leftovers, the lock. */
async function counts(kv: DenoKv, prefix: string): Promise<number[]> {
  const found: number[] = [];
  for (const kind of ["e", "p", "l", "x"]) {
    let number = 0;
    for await (const _ of kv.list({ prefix: [prefix, kind] })) number++;
    found.push(number);
  }
  return found;
}

/** `kv` that fails from its `last`th atomic operation on: that one takes place if `isLate`, and its answer is lost. */
function dying(kv: DenoKv, last: number, isLate: boolean): DenoKv {
  let operations = 0;
  return {
    getMany: (keys) => kv.getMany(keys),
    list: (selector, options) => kv.list(selector, options),
    atomic() {
      const atomic = kv.atomic();
      const commit = atomic.commit.bind(atomic);
      atomic.commit = async () => {
        operations++;
        if (operations < last) return commit();
        if (operations === last && isLate) await commit();
        throw new Error("dead");
      };
      return atomic;
    },
  };
}

/** `kv` that runs `work` before atomic operation number `at`. */
function meddled(kv: DenoKv, at: number, work: () => Promise<unknown>): DenoKv {
  let operations = 0;
  return {
    getMany: (keys) => kv.getMany(keys),
    list: (selector, options) => kv.list(selector, options),
    atomic() {
      const atomic = kv.atomic();
      const commit = atomic.commit.bind(atomic);
      atomic.commit = async () => {
        if (++operations === at) await work();
        return commit();
      };
      return atomic;
    },
  };
}

/** Makes unreferenced parts old enough to be removed, and removes them. */
async function sweep(kv: DenoKv, prefix: string): Promise<number> {
  for await (const { key, value } of kv.list({ prefix: [prefix, "l"] })) await kv.atomic().set(key, { ...value, at: 1 }).commit();
  return denoKvStorage(kv, { prefix: [prefix] }).sweep();
}

/** A commit that needs parts, and one that needs a plan. */
const COMMITS: Record<string, (value: number) => StorageChange[]> = {
  parts: (value) => Array.from({ length: 12 }, (_, i) => ["put", key(i), new Uint8Array(70_000).fill(value)]),
  plan: (value) => [
    ["deleteRange", key(0), key(500)],
    ...Array.from({ length: 500 }, (_, i): StorageChange => ["put", key(i), new Uint8Array(i % 100 === 0 ? 70_000 : 400).fill(value)]),
  ],
};

const own: Step[] = Object.entries(COMMITS).map(([kind, changes]) => ({
  name: `a commit that needs ${kind} and is broken off takes place whole or not at all, and leaves nothing`,
  async run() {
    const kv = await openKv();
    for (const isLate of [false, true]) {
      let last = 0;
      for (let isDone = false; !isDone; ) {
        const prefix = `broken-${kind}-${isLate}-${++last}`;
        same(await denoKvStorage(kv, { prefix: [prefix] }).commit(changes(1)), true);
        const fresh = await counts(kv, prefix);
        same(fresh.slice(2), [0, 0]);
        const broken = denoKvStorage(dying(kv, last, isLate), { prefix: [prefix] });
        isDone = await Promise.resolve(broken.commit(changes(2))).then(() => true, () => false);
        const storage = denoKvStorage(kv, { prefix: [prefix] });
        const entries = await storage.scan([EVERYTHING], { entriesMax: 5000, keysOnly: false });
        same(entries.length, changes(1).filter(([kind]) => kind === "put").length);
        same(new Set(entries.map(([, value]) => value![0])).size, 1);
        same(entries.every(([, value]) => value!.every((byte) => byte === value![0])), true);
        same(await storage.commit(changes(3)), true);
        await sweep(kv, prefix);
        same(await counts(kv, prefix), fresh);
        same(await storage.commit([["deleteRange", ...EVERYTHING]]), true);
        same(await counts(kv, prefix), [0, 0, 0, 0]);
      }
      same(last > 3, true);
    }
    kv.close();
  },
}));

own.push({
  name: "parts that are swept away under their author's hands are written again, and named ones are not swept",
  async run() {
    const kv = await openKv();
    const sameParts = async (prefix: string): Promise<void> => {
      const found = await denoKvStorage(kv, { prefix: [prefix] }).scan([EVERYTHING], { entriesMax: 50, keysOnly: false });
      same(found.map(([, value]) => [value!.length, value![0]]), Array(12).fill([70_000, 7]));
      same(await counts(kv, prefix), [12, 24, 0, 0]);
    };
    // One operation for the claim, one for every ten parts, then the one that references them.
    for (let at = 2; at <= 5; at++) {
      const prefix = `swept-${at}`;
      let swept = 0;
      const slow = denoKvStorage(meddled(kv, at, async () => (swept = await sweep(kv, prefix))), { prefix: [prefix] });
      same(await slow.commit(COMMITS["parts"]!(7)), true);
      same(swept, 24);
      same(await sweep(kv, prefix), 0);
      await sameParts(prefix);
    }
    kv.close();
  },
});

own.push({
  name: "of several large commits at the same time each takes place whole, and readers see one at a time",
  async run() {
    const kvs = [await openKv(), await openKv()];
    const storages = kvs.map((kv) => denoKvStorage(kv, { prefix: ["several"] }));
    same(await storages[0]!.commit(COMMITS["plan"]!(0)), true);
    const seen = async (storage: HostStorage): Promise<Set<number>> => new Set((await storage.scan([EVERYTHING], { entriesMax: 5000, keysOnly: false })).map(([, value]) => value![0]!));
    const work = [1, 2, 3, 4].flatMap((value) => {
      const [one, other] = [storages[value % 2]!, storages[1 - (value % 2)]!];
      return [one.commit(COMMITS[value % 2 ? "plan" : "parts"]!(value)), seen(other)];
    });
    same((await Promise.all(work)).map((result) => result === true || (result as Set<number>).size <= 2), Array(8).fill(true));
    same(await storages[0]!.commit([["deleteRange", ...EVERYTHING]]), true);
    same(await counts(kvs[1]!, "several"), [0, 0, 0, 0]);
    kvs.forEach((kv) => kv.close());
  },
});

own.push({
  name: "what is too much for one operation is refused where it cannot be divided",
  async run(make) {
    const storage = await make();
    const error = await failure((async () => storage.commit(Array.from({ length: 91 }, (_, i) => ["insert", key(i), key(i)])))());
    same([error.name, /90 guards/.test(error.message)], ["RangeError", true]);
    same((await storage.scan([EVERYTHING], { entriesMax: 5, keysOnly: true })).length, 0);
  },
});

await main(async (name) => denoKvStorage(await openKv(), { prefix: ["tests", name] }), own);

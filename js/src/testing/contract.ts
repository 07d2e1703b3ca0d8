// The rules of every storage, as tests that run anywhere, without a test runner or its assertions.

import type { HostStorage, StorageChange, StorageEntry, StorageRange } from "../storage.js";
import { bytesOf as b, compareBytes, textOf } from "../bytes.js";

/** One rule of {@link storageContract}. */
export interface StorageRule {
  /** The rule, as a sentence. */
  name: string;
  /** Rejects if the rule is broken. `first` and `second` are two handles on one empty store; if there is only one handle, pass it twice. */
  check(first: HostStorage, second: HostStorage): Promise<void>;
}

const EVERYTHING: StorageRange = [new Uint8Array(), new Uint8Array(40).fill(255)];
const ALL = { entriesMax: 100_000, keysOnly: false };
const LARGE_BYTES = 5_000_000;

const put = (key: string, value = ""): StorageChange => ["put", b(key), b(value)];
const insert = (key: string, value = ""): StorageChange => ["insert", b(key), b(value)];
const remove = (key: string): StorageChange => ["delete", b(key)];
const removeRange = (start: string, end: string): StorageChange => ["deleteRange", b(start), b(end)];
const require = (key: string): StorageChange => ["require", b(key)];
const range = (start: string, end: string): StorageRange => [b(start), b(end)];

const noise = (length: number, seed: number): Uint8Array => {
  let state = seed | 1;
  return Uint8Array.from({ length }, () => (state = Math.imul(state, 1_103_515_245) + 12_345) >>> 24);
};

function show(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (inner instanceof Uint8Array ? textOf(inner) : inner));
}

function same(found: unknown, wanted: unknown): void {
  if (show(found) !== show(wanted)) throw new Error(`${show(found).slice(0, 500)} instead of ${show(wanted).slice(0, 500)}`);
}

function sameBytes(found: Uint8Array | undefined | null, wanted: Uint8Array): void {
  if (!found || compareBytes(found, wanted) !== 0) throw new Error(`${found?.length} bytes instead of ${wanted.length}, or different ones`);
}

async function done(storage: HostStorage, ...changes: StorageChange[]): Promise<void> {
  same(await storage.commit(changes), true);
}

async function refused(storage: HostStorage, ...changes: StorageChange[]): Promise<void> {
  same(await storage.commit(changes), false);
}

const pairs = (entries: readonly StorageEntry[]): [string, string][] => entries.map(([key, value]) => [textOf(key), textOf(value ?? new Uint8Array())]);
const contents = async (storage: HostStorage): Promise<[string, string][]> => pairs(await storage.scan([EVERYTHING], ALL));
const keys = async (storage: HostStorage, ranges: StorageRange[], entriesMax: number): Promise<string[]> =>
  (await storage.scan(ranges, { entriesMax, keysOnly: true })).map(([key]) => textOf(key));

const rules: Record<string, StorageRule["check"]> = {
  async "values come back in the order asked, and absent ones as nothing"(storage) {
    await done(storage, put("a", "1"), put("b", "2"), put("empty"));
    const found = await storage.getMany(["b", "x", "a", "b", "empty", "aa"].map(b));
    same(found.map((value) => (value ? textOf(value) : null)), ["2", null, "1", "2", "", null]);
    same(await storage.getMany([]), []);
  },
  async "every byte may stand in a key and in a value"(storage) {
    const every = Uint8Array.from({ length: 256 }, (_, at) => at);
    same(await storage.commit([["put", every, every]]), true);
    sameBytes((await storage.getMany([every]))[0], every);
    sameBytes((await storage.scan([EVERYTHING], ALL))[0]?.[0], every);
  },
  async "bytes that look into a larger buffer are no more than they are"(storage) {
    const buffer = b("before-key-value-after");
    const [key, value] = [buffer.subarray(7, 10), buffer.subarray(11, 16)];
    same(await storage.commit([["put", key, value]]), true);
    same(await contents(storage), [["key", "value"]]);
    same((await storage.getMany([key])).length, 1);
  },
  async "keys are ordered by their bytes"(storage) {
    const sorted = [[0], [0, 0], [0, 1], [1], [1, 255], [2], [127], [128], [128, 0], [254, 255], [255], [255, 0], [255, 255]].map((key) => Uint8Array.from(key));
    for (const key of [...sorted].reverse()) same(await storage.commit([["put", key, key]]), true);
    const found = await storage.scan([EVERYTHING], ALL);
    same(found.map(([key]) => [...key]), sorted.map((key) => [...key]));
    same(found.map(([, value]) => [...value!]), sorted.map((key) => [...key]));
  },
  async "a range holds its start and not its end"(storage) {
    await done(storage, ...["a", "b", "ba", "c", "d"].map((key) => put(key)));
    same(await keys(storage, [range("b", "c")], 10), ["b", "ba"]);
    same(await keys(storage, [range("bb", "bc")], 10), []);
    same(await keys(storage, [], 10), []);
  },
  async "ranges are answered in the order given, as often as they are given"(storage) {
    await done(storage, ...["a", "b", "c", "d"].map((key) => put(key)));
    same(await keys(storage, [range("c", "e"), range("a", "c"), range("b", "d")], 10), ["c", "d", "a", "b", "b", "c"]);
  },
  async "a page ends at its count wherever ranges meet"(storage) {
    await done(storage, ...["a1", "a2", "b1", "b2", "c1"].map((key) => put(key)));
    const ranges = [range("a", "b"), range("b", "c"), range("c", "d")];
    const all = ["a1", "a2", "b1", "b2", "c1"];
    for (let count = 1; count <= 6; count++) same(await keys(storage, ranges, count), all.slice(0, count));
  },
  async "pages one behind the other visit every entry once"(storage) {
    const written = Array.from({ length: 3000 }, (_, i) => `k${String(i).padStart(5, "0")}`);
    for (let at = 0; at < written.length; at += 500) await done(storage, ...written.slice(at, at + 500).map((key) => put(key, key)));
    const seen: string[] = [];
    for (let start = b(""); ; ) {
      const page = await storage.scan([[start, b("l")]], { entriesMax: 700, keysOnly: false });
      seen.push(...pairs(page).map(([key, value]) => (key === value ? key : "")));
      if (page.length < 700) break;
      start = b(`${seen.at(-1)}\0`);
    }
    same(seen, written);
  },
  async "a scan takes more ranges than entries"(storage) {
    const written = Array.from({ length: 300 }, (_, i) => `r${String(i).padStart(3, "0")}`);
    await done(storage, ...written.map((key) => put(key, "v")));
    const ranges = [...written, "s"].map((key) => range(key, `${key}\0`));
    same(await keys(storage, ranges, 1000), written);
    same(pairs(await storage.scan(ranges.reverse(), { entriesMax: 2, keysOnly: false })), [["r299", "v"], ["r298", "v"]]);
  },
  async "large values come back whole, and are replaced and removed whole"(storage) {
    const large = noise(LARGE_BYTES, 1);
    const other = noise(LARGE_BYTES / 2, 2);
    same(await storage.commit([["put", b("a"), large], put("b", "small"), ["insert", b("c"), other]]), true);
    sameBytes((await storage.getMany([b("a")]))[0], large);
    const found = await storage.scan([EVERYTHING], { entriesMax: 3, keysOnly: false });
    [large, b("small"), other].forEach((value, at) => sameBytes(found[at]?.[1], value));
    same(await storage.commit([["put", b("a"), other], remove("c"), ["put", b("b"), large]]), true);
    sameBytes((await storage.getMany([b("a")]))[0], other);
    sameBytes((await storage.getMany([b("b")]))[0], large);
    await done(storage, put("a", "small"), removeRange("b", "z"));
    same(await contents(storage), [["a", "small"]]);
  },
  async "values of every size up to the limits of stores come back"(storage) {
    const sizes = [0, 1, 60_000, 61_440, 63_999, 64_000, 64_001, 65_535, 65_536, 65_537, 131_072, 999_999, 1_000_000, 1_000_001, 2_000_001];
    same(await storage.commit(sizes.map((size, at) => ["put", b(`s${at + 10}`), noise(size, at)])), true);
    const found = await storage.scan([EVERYTHING], ALL);
    sizes.forEach((size, at) => sameBytes(found[at]?.[1] ?? new Uint8Array(), noise(size, at)));
  },
  async "many writes are one commit"(storage, second) {
    const written = Array.from({ length: 4000 }, (_, i) => `k${String(i).padStart(5, "0")}`);
    await done(storage, put("guard"), ...written.map((key) => put(key, "1")));
    same((await keys(second, [EVERYTHING], 100_000)).length, 4001);
    await refused(storage, insert("guard"), ...written.map((key) => put(key, "2")));
    await done(storage, require("guard"), removeRange("k", "k04"), put("k00007", "3"), remove("guard"));
    same(await contents(second), [["k00007", "3"]]);
  },
  async "a put replaces, and a delete forgives an absent key"(storage) {
    await done(storage, put("a", "1"), put("b", "1"));
    await done(storage, put("a", "2"), remove("b"), remove("x"));
    same(await contents(storage), [["a", "2"]]);
  },
  async "a range is removed exactly, and an empty one removes nothing"(storage) {
    await done(storage, ...["a", "b", "b1", "b2", "c", "d"].map((key) => put(key)));
    await done(storage, removeRange("b", "c"), removeRange("d", "a"), removeRange("a", "a"), removeRange("x", "z"));
    same((await contents(storage)).map(([key]) => key), ["a", "c", "d"]);
  },
  async "the last write on a key wins"(storage) {
    await done(storage, put("old", "1"), put("a2", "1"));
    await done(
      storage,
      ...[put("pp", "1"), put("pp", "2"), put("pd", "1"), remove("pd"), remove("old"), put("old", "2"), insert("ip", "1"), put("ip", "2")],
      ...[put("pi", "1"), insert("pi", "2"), insert("id", "1"), remove("id"), put("a3", "2"), removeRange("a", "b"), put("a2", "3"), insert("a5", "3")],
    );
    same(await contents(storage), [["a2", "3"], ["a5", "3"], ["ip", "2"], ["old", "2"], ["pi", "2"], ["pp", "2"]]);
  },
  async "an insert of a present key fails the whole commit"(storage) {
    await done(storage, insert("a", "1"), insert("b", "1"), put("d1", "1"));
    await refused(storage, put("b", "2"), put("c", "2"), insert("a", "2"), removeRange("d", "e"));
    same(await contents(storage), [["a", "1"], ["b", "1"], ["d1", "1"]]);
  },
  async "a requirement that is not met fails the whole commit"(storage) {
    await done(storage, put("a", "1"), put("b", "1"));
    await refused(storage, put("b", "2"), require("a"), require("x"), remove("a"), insert("c", "2"));
    same(await contents(storage), [["a", "1"], ["b", "1"]]);
    await done(storage, put("b", "2"), require("a"));
    await done(storage, require("a"));
    await refused(storage, require("x"));
    same(await contents(storage), [["a", "1"], ["b", "2"]]);
  },
  async "guards see what was there before the commit"(storage) {
    await refused(storage, put("a", "1"), require("a"));
    await done(storage, put("a", "1"), insert("a", "2"), insert("a", "3"));
    await refused(storage, remove("a"), insert("a", "4"));
    await refused(storage, removeRange("a", "b"), insert("a", "4"));
    await refused(storage, insert("n", "1"), require("n"));
    await done(storage, remove("a"), require("a"), require("a"), insert("b", "1"));
    same(await contents(storage), [["b", "1"]]);
  },
  async "handles see each other's commits"(first, second) {
    await done(first, put("a", "1"));
    same(await contents(second), [["a", "1"]]);
    await done(second, put("a", "2"), put("b", "2"));
    same(await contents(first), [["a", "2"], ["b", "2"]]);
    await done(first, require("b"), removeRange("a", "c"));
    same(await contents(second), []);
  },
  async "commits at the same time all take place"(first, second) {
    const commits = Array.from({ length: 40 }, (_, i) => done(i % 2 ? first : second, insert(`k${i + 10}`, String(i)), put("last", String(i))));
    await Promise.all(commits);
    same((await keys(second, [range("k", "l")], 100)).length, 40);
  },
  async "of inserts of one key at the same time exactly one wins, and the others leave nothing"(first, second) {
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => [first, second][i % 2]!.commit([put(`t${i}`), insert("key", String(i))])));
    same(won.filter((took) => took).length, 1);
    const winner = won.indexOf(true);
    same(await contents(first), [["key", String(winner)], [`t${winner}`, ""]]);
  },
  async "of two folds at the same time one fails whole"(first, second) {
    await done(first, put("bucket/1", "open"), put("journal/1"), put("journal/2"));
    const fold = (): StorageChange[] => [
      ...["journal/1", "journal/2", "bucket/1"].flatMap((key) => [require(key), remove(key)]),
      insert("bucket/2", "folded"),
    ];
    same((await Promise.all([first.commit(fold()), second.commit(fold())])).sort(), [false, true]);
    same(await contents(second), [["bucket/2", "folded"]]);
  },
  async "a read sees all of a commit or nothing of it"(first, second) {
    await done(first, put("a", "0"), put("z", "0"));
    for (let number = 1; number <= 10; number++) {
      const value = String(number);
      const [entries, values, took] = await Promise.all([
        second.scan([range("a", "b"), range("m", "n"), range("z", "zz")], ALL),
        second.getMany([b("a"), b("z")]),
        first.commit([put("a", value), put(`m${number + 10}`, value), put("z", value)]),
      ]);
      same(took, true);
      const seen = pairs(entries);
      same(seen.at(-1)![1], seen[0]![1]);
      same(seen.length, 2 + Number(seen[0]![1]));
      same(textOf(values[0]!), textOf(values[1]!));
    }
  },
  async "a read sees all of a large commit or nothing of it"(first, second) {
    await done(first, ...Array.from({ length: 1500 }, (_, i) => put(`k${i + 1000}`, "0")));
    for (let number = 1; number <= 3; number++) {
      const value = String(number).repeat(700);
      const [before, , after] = await Promise.all([
        contents(second),
        done(first, ...Array.from({ length: 1500 }, (_, i) => put(`k${i + 1000}`, value)), put("a", value)),
        contents(second),
      ]);
      for (const seen of [before, after]) same(new Set(seen.map(([, text]) => text)).size, 1);
    }
    same(await keys(first, [EVERYTHING], 2000), ["a", ...Array.from({ length: 1500 }, (_, i) => `k${i + 1000}`)]);
  },
  async "an entry that wanders between ranges is seen once"(first, second) {
    await done(first, put("a/token"), put("b/other"));
    for (let round = 0; round < 10; round++) {
      const [from, to] = round % 2 ? ["b/token", "a/token"] : ["a/token", "b/token"];
      const [seen] = await Promise.all([keys(second, [range("a", "b"), range("b", "c")], 100), done(first, remove(from), put(to))]);
      same(seen.filter((key) => key.endsWith("token")).length, 1);
    }
  },
  async "the arrays that were handed over stay as they are"(storage) {
    const [key, value] = [b("key"), noise(100_000, 3)];
    same(await storage.commit([["put", key, value]]), true);
    same(textOf(key), "key");
    sameBytes(value, noise(100_000, 3));
    const [found] = await storage.getMany([key]);
    sameBytes(found, value);
  },
};

/**
 * The rules of {@link HostStorage} as tests, for authors of a storage.
 *
 * @example
 * ```ts
 * for (const { name, check } of storageContract) test(name, () => check(...twoHandlesOnOneEmptyStore()));
 * ```
 */
export const storageContract: readonly StorageRule[] = Object.entries(rules).map(([name, check]) => ({ name, check }));

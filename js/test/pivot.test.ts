// Documents and columns to blocks, and back to documents.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Binary, Decimal128, Double, Int32, Long, MaxKey, ObjectId, Timestamp, UUID } from "bson";
import * as B from "../src/block.ts";
import { BadValueError } from "../src/errors.ts";
import { queryDocument } from "../src/find.ts";
import { columnsToBlock, documentsToBlock } from "../src/pivot.ts";
import { blockToDocuments } from "../src/rows.ts";
import type { ColumnInput } from "../src/shapes.ts";
import type { BSONReadOptions, Document } from "../src/types.ts";

function pivot(documents: readonly Document[], ids?: unknown[]): B.Block {
  const bytes = documentsToBlock(documents, ids);
  assert.ok(bytes, "a block was made");
  return B.decodeBlock(bytes);
}

function roundTrip(documents: readonly Document[], options?: BSONReadOptions): Document[] {
  return blockToDocuments(pivot(documents), options);
}

function typeOf(values: readonly unknown[]): number {
  return pivot(values.map((v) => ({ v }))).columns[0]!.type;
}

const id = new ObjectId();

test("each JavaScript and BSON type has its column", () => {
  assert.equal(typeOf([1, 2.5, NaN, -0]), B.F64);
  assert.equal(typeOf([new Double(1), 2]), B.F64);
  assert.equal(typeOf([new Int32(1)]), B.I32);
  assert.equal(typeOf([1n, Long.fromNumber(2)]), B.I64);
  assert.equal(typeOf([new Date(0)]), B.DATE_F64);
  assert.equal(typeOf([true, false]), B.BOOL);
  assert.equal(typeOf(["a"]), B.STRING);
  assert.equal(typeOf([id]), B.OBJECT_ID);
  for (const value of [null, {}, [], /a/, Decimal128.fromString("1"), new Binary(new Uint8Array(1)), new MaxKey(), new Uint8Array(2)]) {
    assert.equal(typeOf([value]), B.BSON);
  }
});

test("values survive the round trip", () => {
  const documents = [
    { n: 1.5, i: new Int32(-7), l: 2n ** 62n, d: new Date(-5), b: true, s: "°C 😀", o: id, a: [1, [2, "x"]], e: { f: { g: null } } },
    { n: -0, i: new Int32(8), l: -1n, d: new Date(8.64e15), b: false, s: "", o: new ObjectId(), a: [], e: {} },
  ];
  const expected = documents.map((document) => ({ ...document, i: document.i.value }));
  assert.deepEqual(roundTrip(documents, { useBigInt64: true }), expected);
});

test("rare BSON types survive the round trip", () => {
  const rare = {
    decimal: Decimal128.fromString("1.10"),
    binary: new Binary(Uint8Array.of(1, 2), 5),
    uuid: new UUID(),
    timestamp: new Timestamp({ t: 1, i: 2 }),
    regexp: /a.c/i,
    max: new MaxKey(),
  };
  const [back] = roundTrip([rare, rare]);
  for (const key of Object.keys(rare) as (keyof typeof rare)[]) assert.deepEqual(String(back![key]), String(rare[key]), key);
});

test("numbers within nested values are doubles too", () => {
  const [back] = roundTrip([{ v: { a: 1, b: [2] } }], { promoteValues: false });
  assert.ok(back!["v"].a instanceof Double && back!["v"].b[0] instanceof Double);
});

test("a number is never an integer, an Int32 never a double", () => {
  const [back] = roundTrip([{ n: 5, i: new Int32(5), l: 5n }], { promoteValues: false });
  assert.deepEqual(back, { n: new Double(5), i: new Int32(5), l: Long.fromNumber(5) });
});

test("64-bit integers become numbers only where they fit", () => {
  const values = [0n, -1n, 2n ** 53n, -(2n ** 53n), 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n, -(2n ** 31n)];
  const expected = values.map((v) => (v <= 2n ** 53n && v >= -(2n ** 53n) ? Number(v) : Long.fromBigInt(v)));
  const documents = values.map((v) => ({ v }));
  assert.deepEqual(roundTrip(documents).map((d) => d["v"] as unknown), expected);
  assert.deepEqual(roundTrip(documents, { promoteLongs: false }).map((d) => d["v"] as unknown), values.map((v) => Long.fromBigInt(v)));
  assert.deepEqual(roundTrip(documents, { useBigInt64: true }).map((d) => d["v"] as unknown), values);
});

test("a column of several types holds BSON values", () => {
  const mixed = [1, "one", true, null, new Date(1), { a: 1 }, [1], id, new Int32(3), 2.5];
  for (let rotation = 0; rotation < mixed.length; rotation++) {
    const values = [...mixed.slice(rotation), ...mixed.slice(0, rotation)];
    assert.equal(typeOf(values), B.BSON);
    assert.deepEqual(
      roundTrip(values.map((v) => ({ v }))).map((d) => d["v"] as unknown),
      values.map((v) => (v instanceof Int32 ? v.value : v)),
    );
  }
});

test("missing and undefined are absent, null is a value", () => {
  const documents = [{ a: 1, b: null }, { a: undefined, b: 2 }, { b: null }, { a: 4 }];
  assert.deepEqual(roundTrip(documents), [{ a: 1, b: null }, { b: 2 }, { b: null }, { a: 4 }]);
  assert.deepEqual(roundTrip(Array.from({ length: 20 }, (_, i) => (i % 3 ? { s: "x" } : {})))[1], { s: "x" });
});

test("functions and symbols are left out", () => {
  assert.deepEqual(roundTrip([{ a: 1, f: () => 1, s: Symbol("x") }, { a: (): number => 2 }]), [{ a: 1 }, {}]);
  assert.deepEqual(roundTrip([{ v: { a: 1, f: () => 1, u: undefined } }]), [{ v: { a: 1 } }]);
});

test("a field that no row has gets no column", () => {
  assert.deepEqual(pivot([{ a: undefined }, { a: undefined }]).columns, []);
});

test("columns come in the order in which documents have their keys, also if the first documents lack some", () => {
  const names = (documents: Document[]): string[] => pivot(documents).columns.map((column) => column.name);
  assert.deepEqual(names([{ a: 1, e: 1 }, { a: 1, b: 1, c: 1, e: 1, f: 1 }, { a: 1, e: 1 }, { c: 1, d: 1 }]), ["a", "b", "c", "d", "e", "f"]);
  // Where documents disagree, the first ones decide.
  assert.deepEqual(names([{ b: 1, a: 1 }, { a: 1, c: 1, b: 1 }, { d: 1 }]), ["d", "b", "a", "c"]);
  const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`f${n}`, n]));
  assert.equal(names([wide, { new: 1, f7: 1 }, { f8: 1 }])[2000], "new");
});

test("keys that the prototype has too are only read where the document has them", () => {
  const proto = JSON.parse('{"__proto__": 5, "a": 1}') as Document;
  const documents = [{ constructor: 1, valueOf: "x" }, { a: 1 }, proto];
  const back = roundTrip(documents);
  assert.deepEqual(Object.keys(back[1]!), ["a"]);
  assert.equal(Object.getOwnPropertyDescriptor(back[2]!, "__proto__")?.value, 5);
  assert.equal(Object.getPrototypeOf(back[2]!), Object.prototype);
  assert.equal(back[0]!["constructor"], 1);
});

test("only own fields of class instances are stored", () => {
  class Reading {
    at = new Date(5);
    temp = 1;
    get double(): number {
      return this.temp * 2;
    }
  }
  assert.deepEqual(roundTrip([new Reading(), new Reading()]), [{ at: new Date(5), temp: 1 }, { at: new Date(5), temp: 1 }]);
  assert.deepEqual(roundTrip([{ double: 1 }, new Reading()])[1], { at: new Date(5), temp: 1 });
});

test("repeated text and metadata become dictionaries", () => {
  const documents = Array.from({ length: 1000 }, (_, i) => ({ s: `station-${i % 10}`, m: { id: i % 10, site: "A" }, n: i % 2 ? null : "odd" }));
  const block = pivot(documents);
  assert.deepEqual(block.columns.map((column) => column.dictionary?.rows), [10, 10, 2]);
  assert.deepEqual(blockToDocuments(block), documents);
});

test("distinct text and objects are stored plainly", () => {
  const documents = Array.from({ length: 1000 }, (_, i) => ({ s: `log line ${i}`, m: { i } }));
  const block = pivot(documents);
  assert.deepEqual(block.columns.map((column) => column.dictionary), [undefined, undefined]);
  assert.deepEqual(blockToDocuments(block), documents);
});

test("a dictionary distinguishes similar values", () => {
  const alike: unknown[] = [
    { a: 1 }, { a: "1" }, { a: true }, { a: 1n }, { a: null }, { a: 0 }, { a: -0 }, { a: NaN }, { a: {} }, { a: { b: 1 } }, { a: [1] }, {},
    { a: 1, b: 2 }, { b: 2, a: 1 }, { a: new Int32(1) }, { a: new Date(1) }, { "a1": "" }, { a: { b: 1 }, c: 2 }, { a: { b: 1, c: 2 } }, "a", 1, "1", null, [], { a: undefined },
  ];
  const values = Array.from({ length: alike.length * 4 }, (_, i) => alike[i % alike.length]);
  const block = pivot(values.map((v) => ({ v })));
  assert.ok(block.columns[0]!.dictionary, "it is a dictionary");
  const back = blockToDocuments(block, { useBigInt64: true }).map((document) => document["v"] as unknown);
  const expected = values.map((v) => JSON.stringify(v, (_, x: unknown) => (typeof x === "bigint" ? `${x}n` : Object.is(x, -0) ? "-0" : Number.isNaN(x) ? "NaN" : x)));
  const got = back.map((v) => JSON.stringify(v, (_, x: unknown) => (typeof x === "bigint" ? `${x}n` : Object.is(x, -0) ? "-0" : Number.isNaN(x) ? "NaN" : x)));
  assert.deepEqual(got, expected.map((text) => (text === '{"a":{"value":1}}' ? '{"a":1}' : text)));
});

test("documents read from a dictionary share no object", () => {
  const meta = { id: 1, tags: ["a", { b: 1 }], since: new Date(0), oid: id };
  const documents = Array.from({ length: 20 }, () => ({ m: meta, flat: { x: 1 } }));
  const back = roundTrip(documents);
  assert.deepEqual([...back], documents);
  back[0]!["m"].tags[1].b = 99;
  back[0]!["m"].since.setTime(5);
  back[0]!["flat"].x = 2;
  back[0]!["m"].oid.id[0] ^= 1;
  assert.deepEqual(back.slice(1), documents.slice(1));
});

test("changing a document after the call changes nothing in the block", () => {
  const documents = Array.from({ length: 10 }, () => ({ m: { a: 1 } }));
  const bytes = documentsToBlock(documents)!;
  documents[3]!.m.a = 2;
  assert.deepEqual(blockToDocuments(B.decodeBlock(bytes))[3], { m: { a: 1 } });
});

test("an invalid Date is refused with its place", () => {
  const invalid = new Date(NaN);
  const isRefusal = (error: unknown): boolean => error instanceof BadValueError && error.code === 2 && error.codeName === "BadValue" && /Document 1, field "at": Invalid Date/.test(error.message);
  assert.throws(() => documentsToBlock([{ at: new Date() }, { at: invalid }]), isRefusal);
  assert.throws(() => documentsToBlock([{ at: "x" }, { at: { deep: [invalid] } }]), isRefusal);
  assert.throws(() => documentsToBlock([{ at: invalid }], undefined, 1), isRefusal);
});

test("integers beyond 64 bits are refused", () => {
  assert.throws(() => documentsToBlock([{ v: 1n }, { v: 2n ** 63n }]), /Document 1, field "v": 9223372036854775808/);
  assert.throws(() => documentsToBlock([{ v: [2n ** 64n] }]), BadValueError);
});

test("keys with a NUL are refused", () => {
  assert.throws(() => documentsToBlock([{ "a\0b": 1 }]), BadValueError);
  assert.throws(() => documentsToBlock([{ v: { "a\0b": 1 } }]), BadValueError);
});

test("values that contain themselves are refused with the path on which they do", () => {
  const circular: Document = { a: 1, list: [2, new Map()] };
  circular["list"][1].set("self", circular);
  const refused = { name: "BadValueError", code: 2, message: 'Document 0, field "v": The value at "list.1.self" contains itself' };
  assert.throws(() => documentsToBlock([{ v: circular }]), refused);
  assert.throws(() => documentsToBlock(Array.from({ length: 20 }, () => ({ v: circular }))), refused);
});

/** `levels` nested objects. */
function nested(levels: number): Document {
  let value: Document = {};
  for (let i = 1; i < levels; i++) value = { a: value };
  return value;
}

test("values nested more than 180 levels deep are Overflow, however deep they are", () => {
  for (const levels of [181, 5000, 100_000]) {
    const refused = { code: 15, codeName: "Overflow", message: /field "v": The value at "a.a.a.a.a.a.a.a.…" is nested more than 180 levels deep/ };
    assert.throws(() => documentsToBlock([{ v: nested(levels) }]), refused);
    assert.throws(() => queryDocument({ v: nested(levels) }), { code: 15, message: /"v\.a/ });
  }
  assert.ok(documentsToBlock([{ v: nested(179) }]));
  assert.ok(queryDocument({ v: nested(179) }));
});

test("one value in two places is not circular", () => {
  const shared = { a: 1 };
  assert.ok(documentsToBlock([{ v: { one: shared, other: [shared, shared] } }]));
});

test("a query that contains itself is refused with the path on which it does", () => {
  const circular: Document = {};
  circular["$or"] = [{ a: 1 }, circular];
  assert.throws(() => queryDocument(circular), { name: "BadValueError", message: 'The value at "$or.1" contains itself' });
});

test("a toBSON without end is Overflow", () => {
  const endless = { toBSON: () => ({ endless }) };
  assert.throws(() => documentsToBlock([{ v: endless }]), { code: 15, message: /nested more than 180 levels deep/ });
});

test("a value that is no document is a TypeError with its index", () => {
  for (const bad of [null, undefined, 1, "a", [], new Date(), new Map(), id, () => 1, new Uint8Array(1)]) {
    assert.throws(() => documentsToBlock([{}, bad as unknown as Document]), (error: unknown) => error instanceof TypeError && /Document 1 is /.test(error.message));
  }
});

test("documents with hardly a key in common are sent as BSON", () => {
  assert.equal(documentsToBlock(Array.from({ length: 2000 }, (_, i) => ({ [`key${i}`]: i }))), undefined);
  assert.ok(documentsToBlock(Array.from({ length: 50 }, (_, i) => ({ [`key${i}`]: i }))));
});

test("separate ids become the first column", () => {
  const own = { temp: 1, _id: "own" };
  const back = blockToDocuments(pivot([{ temp: 2 }, own], [id, "own"]));
  assert.deepEqual(back, [{ _id: id, temp: 2 }, { _id: "own", temp: 1 }]);
  assert.deepEqual(Object.keys(back[1]!), ["_id", "temp"]);
});

test("toBSON is honoured in values", () => {
  const value = { toBSON: () => ({ x: 1 }) };
  assert.deepEqual(roundTrip(Array.from({ length: 10 }, () => ({ v: value })))[9], { v: { x: 1 } });
  assert.deepEqual(roundTrip([{ v: { toBSON: () => undefined }, w: 1 }]), [{ w: 1 }]);
});

test("many documents of one shape become the columns that a few of them become", () => {
  const rows = 20_003;
  const documents = Array.from({ length: rows }, (_, n) => ({
    at: new Date(n),
    station: `s${n % 7}`,
    temp: n / 4,
    count: new Int32(n),
    big: BigInt(n) << 40n,
    ok: n % 3 === 0,
    sometimes: n % 5 === 0 ? undefined : n,
    later: n < 9000 ? undefined : n,
    changes: n < 12_000 ? n : `text ${n}`,
    place: { x: n % 2 },
    never: undefined,
    id,
  }));
  const types: Record<string, number> = { at: B.DATE_F64, station: B.STRING, temp: B.F64, count: B.I32, big: B.I64, ok: B.BOOL, sometimes: B.F64, later: B.F64, changes: B.BSON, place: B.BSON, id: B.OBJECT_ID };
  const block = pivot(documents);
  assert.deepEqual(Object.fromEntries(block.columns.map(({ name, type }) => [name, type])), types);
  assert.deepEqual(block.columns.map(({ name }) => name), Object.keys(types));
  const expected = documents.map(({ count, never, ...others }) => ({ ...others, count: count.value }));
  for (const document of expected) for (const [key, value] of Object.entries(document)) if (value === undefined) delete (document as Document)[key];
  const found = blockToDocuments(block, { useBigInt64: true });
  for (const [at, document] of found.entries()) assert.deepEqual(document, expected[at]);
  // A document with another shape, or one that cannot be stored, is found at any position.
  const more = documents.map(({ at, temp }) => ({ at, temp }) as Document);
  more[15_000] = { temp: 1, at: new Date(1), more: true };
  assert.deepEqual(roundTrip(more)[15_000], { at: new Date(1), temp: 1, more: true });
  more[15_000] = { at: new Date(NaN), temp: 1 };
  assert.throws(() => pivot(more), /Document 15000, field "at": Invalid Date/);
  more[15_000] = new Date() as unknown as Document;
  assert.throws(() => pivot(more), /Document 15000 is not a plain object/);
});

test("a hundred thousand documents of changing shape survive the round trip", () => {
  const documents = Array.from({ length: 100_000 }, (_, i) => ({
    at: new Date(1.7e12 + i * 1000),
    station: { id: i % 50, site: i % 3 ? "A" : "B" },
    temp: i / 7,
    ...(i % 5 ? { gust: i } : {}),
    ...(i % 1000 ? {} : { note: `every thousandth, ${i}` }),
  }));
  assert.deepEqual(roundTrip(documents), documents);
});

function fromColumns(input: Record<string, ColumnInput>): { types: number[]; documents: Document[] } {
  const block = B.decodeBlock(columnsToBlock(input));
  return { types: block.columns.map((column) => column.type), documents: blockToDocuments(block, { useBigInt64: true }) };
}

test("typed arrays and arrays become columns", () => {
  const { types, documents } = fromColumns({
    f64: Float64Array.of(1.5, NaN),
    f32: Float32Array.of(0.5, 2),
    i32: Int32Array.of(-1, 2),
    u32: Uint32Array.of(1, 4294967295),
    i16: Int16Array.of(-1, 2),
    u16: Uint16Array.of(1, 65535),
    i8: Int8Array.of(-1, 2),
    u8: Uint8Array.of(1, 255),
    c8: Uint8ClampedArray.of(1, 255),
    i64: BigInt64Array.of(-1n, 2n ** 60n),
    dates: [new Date(1), new Date(2)],
    numbers: [1, 2],
    words: ["a", undefined],
    flags: [true, false],
    mixed: [1, null],
    ids: [id, id],
  });
  assert.deepEqual(types, [B.F64, B.F64, B.I32, B.F64, B.I32, B.I32, B.I32, B.I32, B.I32, B.I64, B.DATE_F64, B.F64, B.STRING, B.BOOL, B.BSON, B.OBJECT_ID]);
  const { words, ...last } = documents[1]!;
  assert.equal(words, undefined);
  assert.deepEqual(last, {
    f64: NaN, f32: 2, i32: 2, u32: 4294967295, i16: 2, u16: 65535, i8: 2, u8: 255, c8: 255, i64: 2n ** 60n,
    dates: new Date(2), numbers: 2, flags: false, mixed: null, ids: id,
  });
});

test("typed arrays that are views of larger buffers are stored correctly", () => {
  const larger = Float64Array.of(9, 1, 2, 9);
  assert.deepEqual(fromColumns({ a: larger.subarray(1, 3) }).documents, [{ a: 1 }, { a: 2 }]);
});

test("columns of different lengths and values that are no columns are a TypeError", () => {
  const bad: unknown[] = [{ a: [1], b: [1, 2] }, {}, null, [1], { a: 1 }, { a: "text" }, { a: new DataView(new ArrayBuffer(8)) }, { a: new BigUint64Array(1) }];
  for (const input of bad) assert.throws(() => columnsToBlock(input as Record<string, ColumnInput>), TypeError);
});

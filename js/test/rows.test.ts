// Blocks to documents and to columns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Double, Int32, Long, ObjectId } from "bson";
import * as B from "../src/block.ts";
import { documentsToBlock } from "../src/pivot.ts";
import { blockToDocuments } from "../src/rows.ts";
import { blocksToColumns } from "../src/typed.ts";
import type { BSONReadOptions, Document } from "../src/types.ts";

function block(documents: readonly Document[]): B.Block {
  return B.decodeBlock(documentsToBlock(documents)!);
}

function toColumns(parts: readonly (readonly Document[])[], options?: BSONReadOptions): Document {
  return blocksToColumns(parts.map(block), options);
}

test("both kinds of date columns become dates", () => {
  const values = [0, -1, 8.64e15, -8.64e15, 1.7e12];
  const columns: B.Column[] = [
    { name: "a", type: B.DATE, rows: 5, presence: undefined, data: BigInt64Array.from(values, BigInt), aux: undefined, dictionary: undefined },
    { name: "b", type: B.DATE_F64, rows: 5, presence: undefined, data: Float64Array.from(values), aux: undefined, dictionary: undefined },
  ];
  const decoded = B.decodeBlock(B.encodeBlock(5, columns));
  assert.deepEqual(blockToDocuments(decoded), values.map((ms) => ({ a: new Date(ms), b: new Date(ms) })));
  assert.deepEqual(blocksToColumns([decoded]), { a: Float64Array.from(values), b: Float64Array.from(values) });
});

test("every type may have a dictionary", () => {
  const inner = (type: number, data: B.ColumnData): B.Column => ({ name: "", type, rows: 2, presence: undefined, data, aux: undefined, dictionary: undefined });
  const dictionaries = [
    inner(B.F64, Float64Array.of(1.5, 2.5)),
    inner(B.I32, Int32Array.of(3, 4)),
    inner(B.I64, BigInt64Array.of(5n, 6n)),
    inner(B.DATE, BigInt64Array.of(7n, 8n)),
    inner(B.DATE_F64, Float64Array.of(9, 10)),
    inner(B.BOOL, Uint8Array.of(0, 1)),
  ];
  const columns = dictionaries.map((dictionary, i): B.Column => ({
    name: `c${i}`, type: dictionary.type, rows: 3, presence: undefined, data: Uint32Array.of(1, 0, 1), aux: undefined, dictionary,
  }));
  const decoded = B.decodeBlock(B.encodeBlock(3, columns));
  assert.deepEqual(blockToDocuments(decoded)[0], { c0: 2.5, c1: 4, c2: 6, c3: new Date(8), c4: new Date(10), c5: true });
  assert.deepEqual(blocksToColumns([decoded]), {
    c0: Float64Array.of(2.5, 1.5, 2.5), c1: Int32Array.of(4, 3, 4), c2: BigInt64Array.of(6n, 5n, 6n),
    c3: Float64Array.of(8, 7, 8), c4: Float64Array.of(10, 9, 10), c5: [true, false, true],
  });
});

test("promoteValues and promoteLongs keep BSON classes, nested ones too", () => {
  const document = { n: 1, i: new Int32(2), l: Long.fromNumber(3), v: { n: 1, l: Long.fromNumber(3) } };
  assert.deepEqual(blockToDocuments(block([document]), { promoteValues: false }), [
    { n: new Double(1), i: new Int32(2), l: Long.fromNumber(3), v: { n: new Double(1), l: Long.fromNumber(3) } },
  ]);
  assert.deepEqual(blockToDocuments(block([document]), { promoteLongs: false }), [{ n: 1, i: 2, l: Long.fromNumber(3), v: { n: 1, l: Long.fromNumber(3) } }]);
  assert.deepEqual(blockToDocuments(block([document]), { useBigInt64: true }), [{ n: 1, i: 2, l: 3n, v: { n: 1, l: 3n } }]);
});

test("columns of one batch are views of it", () => {
  const one = block([{ a: 1, at: new Date(1) }, { a: 2, at: new Date(2) }]);
  const columns: Document = blocksToColumns([one]);
  assert.equal(columns["a"], one.columns[0]!.data);
  assert.deepEqual(columns, { a: Float64Array.of(1, 2), at: Float64Array.of(1, 2) });
});

test("absent numbers and dates are NaN, other absent cells undefined", () => {
  assert.deepEqual(
    toColumns([[{ f: 1, i: new Int32(1), l: 1n, d: new Date(1), b: true, s: "x" }, {}, { f: 3, i: new Int32(3), l: 3n, d: new Date(3), b: false, s: "z" }]]),
    {
      f: Float64Array.of(1, NaN, 3), i: Float64Array.of(1, NaN, 3), l: [1n, undefined, 3n],
      d: Float64Array.of(1, NaN, 3), b: [true, undefined, false], s: ["x", undefined, "z"],
    },
  );
});

test("integers without absent cells stay integers", () => {
  assert.deepEqual(toColumns([[{ i: new Int32(1), l: 1n }], [{ i: new Int32(2), l: 2n }]]), { i: Int32Array.of(1, 2), l: BigInt64Array.of(1n, 2n) });
});

test("batches are joined whatever their fields and types", () => {
  const id = new ObjectId();
  assert.deepEqual(
    toColumns([[{ a: 1, s: "x" }, { a: 2, s: "y" }], [], [{ a: new Int32(3), m: 1 }], [{ a: 4, s: 5, m: "x", o: id }]]),
    {
      a: Float64Array.of(1, 2, 3, 4), s: ["x", "y", undefined, 5], m: [undefined, undefined, 1, "x"], o: [undefined, undefined, undefined, id],
    },
  );
});

test("64-bit integers among doubles keep their value", () => {
  assert.deepEqual(toColumns([[{ a: 2n ** 60n + 1n }], [{ a: 1.5 }]]), { a: [2n ** 60n + 1n, 1.5] });
});

test("no rows give no columns", () => {
  assert.deepEqual(toColumns([]), {});
});

test("rows of one shape have their fields in the order of the columns", () => {
  for (const row of blockToDocuments(block([{ b: 1, a: 2 }, { a: 1, b: 2 }]))) assert.deepEqual(Object.keys(row), ["b", "a"]);
});

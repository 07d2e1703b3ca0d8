// Blocks to documents and to columns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Double, Int32, Long, ObjectId } from "bson";
import * as B from "../src/block.ts";
import { documentsToBlock } from "../src/pivot.ts";
import { blockToDocuments, columnReader, dateReader } from "../src/rows.ts";
import type { Columns } from "../src/shapes.ts";
import { blocksToColumns as joined } from "../src/typed.ts";
import type { BSONReadOptions, Document } from "../src/types.ts";

function blocksToColumns(blocks: readonly B.Block[], options: BSONReadOptions = {}): Columns {
  return joined(blocks, options, [columnReader, dateReader]);
}

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

test("a block of fields becomes objects, each of its own", () => {
  const column = (name: string, type: number, data: B.ColumnData, presence?: Uint8Array, aux?: Uint8Array, dictionary?: B.Column): B.Column =>
    B.columnOf(name, type, 3, data, presence, aux, dictionary);
  const objects = (name: string, columns: B.Column[], presence?: Uint8Array): B.Column => column(name, B.OBJECTS, new Uint8Array(0), presence, B.encodeBlock(3, columns));
  const entries = B.columnOf("", B.I64, 2, BigInt64Array.of(7n, 1n << 60n));
  const inner = objects("in", [column("x", B.F64, Float64Array.of(0.5, 1.5, 2.5)), column("__proto__", B.I32, Int32Array.of(1, 2, 3))], Uint8Array.of(0b110));
  const outer = objects("o", [column("n", B.I64, Uint32Array.of(0, 1, 0), undefined, undefined, entries), inner, column("at", B.DATE_F64, Float64Array.of(1, 2, 3), Uint8Array.of(0b011))]);
  const decoded = B.decodeBlock(B.encodeBlock(3, [outer, objects("none", [], Uint8Array.of(0b010))]));
  const [first, second, third] = blockToDocuments(decoded);
  assert.deepEqual(first, { o: { n: 7, at: new Date(1) } });
  const own = JSON.parse('{"x":1.5,"__proto__":2}') as Document;
  assert.deepEqual(second, { o: { n: Long.fromBigInt(1n << 60n), in: own, at: new Date(2) }, none: {} });
  assert.deepEqual(Object.keys(second!["o"].in), ["x", "__proto__"]);
  assert.deepEqual(third!["o"].in.x, 2.5);
  assert.deepEqual(blockToDocuments(decoded, { promoteValues: false })[1]!["o"].in.x, new Double(1.5));
  assert.deepEqual(blocksToColumns([decoded, decoded])["o"], [...blockToDocuments(decoded), ...blockToDocuments(decoded)].map(({ o }) => o));
});

test("a block of elements becomes arrays, each of its own", () => {
  const elements = (type: number, data: B.ColumnData, aux?: Uint8Array): Uint8Array => B.encodeBlock(4, [B.columnOf("", type, 4, data, undefined, aux)]);
  const arrays = (name: string, aux: Uint8Array, presence?: Uint8Array): B.Column => B.columnOf(name, B.ARRAYS, 3, Uint32Array.of(2, 2, 4), presence, aux);
  const fields = B.encodeBlock(4, [B.columnOf("x", B.I32, 4, Int32Array.of(1, 2, 3, 4))]);
  const entries = B.columnOf("", B.I32, 2, Int32Array.of(7, 8));
  const repeated = B.encodeBlock(4, [B.columnOf("", B.I32, 4, Uint32Array.of(1, 0, 1, 1), undefined, undefined, entries)]);
  const columns = [arrays("n", elements(B.F64, Float64Array.of(0.5, 1.5, 2.5, 3.5))), arrays("o", elements(B.OBJECTS, new Uint8Array(0), fields), Uint8Array.of(0b101)), arrays("r", repeated)];
  const decoded = B.decodeBlock(B.encodeBlock(3, columns));
  const documents = blockToDocuments(decoded);
  assert.deepEqual(documents, [
    { n: [0.5, 1.5], o: [{ x: 1 }, { x: 2 }], r: [8, 7] },
    { n: [], r: [] },
    { n: [2.5, 3.5], o: [{ x: 3 }, { x: 4 }], r: [8, 8] },
  ]);
  assert.deepEqual(blockToDocuments(decoded, { promoteValues: false })[2]!["n"], [new Double(2.5), new Double(3.5)]);
  assert.deepEqual(blocksToColumns([decoded, decoded])["o"], [...documents, ...documents].map(({ o }) => o));
});

test("columns do not depend on how rows are grouped into blocks", () => {
  const [int, long, date] = [(n: number) => new Int32(n), (n: number) => Long.fromNumber(n), (n: number) => new Date(n)];
  const kinds: Record<string, [unknown[], unknown]> = {
    "doubles and 32-bit integers": [[0.5, int(-1), int(2), 3.5, 4.5, int(5)], Float64Array.of(0.5, -1, 2, 3.5, 4.5, 5)],
    "with gaps": [[0.5, int(1), undefined, 3.5, undefined, int(5)], Float64Array.of(0.5, 1, NaN, 3.5, NaN, 5)],
    "32-bit integers": [[1, 2, 3, 4, 5, 6].map(int), Int32Array.of(1, 2, 3, 4, 5, 6)],
    "64-bit integers": [[1, 2, 3, 4, 5, 2 ** 60].map(long), BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 2n ** 60n)],
    "64-bit integers among others": [[0.5, long(1), int(2), long(3), 4.5, long(2 ** 60)], [0.5, 1n, 2, 3n, 4.5, 2n ** 60n]],
    dates: [[-1, 2e12, 0, 8.64e15, -8.64e15, 5].map(date), Float64Array.of(-1, 2e12, 0, 8.64e15, -8.64e15, 5)],
    "dates and gaps": [[date(1), undefined, date(3), date(4), undefined, undefined], Float64Array.of(1, NaN, 3, 4, NaN, NaN)],
    "numbers and null": [[0.5, null, int(2), 3.5, null, int(5)], [0.5, null, 2, 3.5, null, 5]],
    "dates and numbers": [[date(1), 1, date(3), 4.5, 5.5, int(6)], [date(1), 1, date(3), 4.5, 5.5, 6]],
    "numbers and strings": [[0.5, int(1), int(2), "3", "4", 5], [0.5, 1, 2, "3", "4", 5]],
  };
  // One row has a value of another type, so that the engine's column has tags. The row is cut off, as a filter would do.
  const tagged = (values: readonly unknown[]): B.Block => {
    const whole = B.decodeBlock(documentsToBlock([...values, Symbol.for("other")].map((x) => ({ t: 1, ...(x === undefined ? {} : { x: typeof x === "symbol" ? [] : x }) })))!);
    const columns = whole.columns.map((column) => ({ ...column, rows: values.length, data: column.data.subarray(0, values.length + (column.type === B.BSON ? 1 : 0)) as B.ColumnData }));
    assert.equal(columns.find(({ name }) => name === "x")?.type, B.BSON);
    return { rows: values.length, columns };
  };
  for (const [kind, [values, expected]] of Object.entries(kinds)) {
    const present = values.map((x) => (x === undefined ? { t: 1 } : { t: 1, x }));
    for (let first = 0; first <= 6; first++) {
      for (let second = first; second <= 6; second++) {
        const cuts = [0, first, second, 6].map((cut, i, all) => [cut, all[i + 1] ?? 6] as const);
        const typed = cuts.map(([from, to]) => present.slice(from, to)).filter((part) => part.length > 0).map(block);
        const parts = cuts.map(([from, to]) => values.slice(from, to)).filter((part) => part.length > 0).map(tagged);
        assert.deepEqual(blocksToColumns(typed)["x"], expected, `${kind}, ${first}, ${second}`);
        assert.deepEqual(blocksToColumns(parts)["x"], expected, `${kind}, tagged, ${first}, ${second}`);
        assert.deepEqual(blocksToColumns([...parts.slice(0, 1), ...typed.slice(1)])["x"], expected, `${kind}, both, ${first}, ${second}`);
      }
    }
  }
});

test("rows that are not in a result do not decide what its columns are", () => {
  const one = (column: Partial<B.Column> & { type: number; data: B.ColumnData }): B.Column => ({ name: "x", rows: 1, presence: undefined, aux: undefined, dictionary: undefined, ...column });
  const none = { presence: Uint8Array.of(0) };
  const left = [
    one({ type: B.BSON, data: Uint32Array.of(0, 0), aux: new Uint8Array(), ...none }),
    one({ type: B.STRING, data: Uint32Array.of(0, 0), aux: new Uint8Array(), ...none }),
    one({ type: B.I64, data: BigInt64Array.of(0n), ...none }),
    one({ type: B.F64, data: Float64Array.of(0), ...none }),
    one({ type: B.DATE, data: BigInt64Array.of(0n), ...none }),
  ];
  const found: [B.Column, unknown][] = [
    [one({ type: B.DATE, data: BigInt64Array.of(7n) }), Float64Array.of(NaN, 7)],
    [one({ type: B.F64, data: Float64Array.of(0.5) }), Float64Array.of(NaN, 0.5)],
    [one({ type: B.I32, data: Int32Array.of(5) }), Float64Array.of(NaN, 5)],
    [one({ type: B.I64, data: BigInt64Array.of(5n) }), [undefined, 5n]],
    [one({ type: B.BOOL, data: Uint8Array.of(1) }), [undefined, true]],
  ];
  for (const absent of left) {
    assert.deepEqual(blocksToColumns([{ rows: 1, columns: [absent] }]), {}, "a field that no row has gets no column");
    for (const [column, expected] of found) {
      const blocks = [absent, column].map((column) => ({ rows: 1, columns: [column] }));
      assert.deepEqual(blocksToColumns(blocks)["x"], expected);
    }
    assert.deepEqual(blocksToColumns([{ rows: 0, columns: [{ ...absent, rows: 0 }] }]), { x: new Float64Array() });
  }
  const entries = block([{ x: 0.5 }, { x: new Int32(2) }, { x: "other" }]).columns[0]!;
  const column = one({ rows: 3, type: B.BSON, data: Uint32Array.of(1, 2, 0), presence: Uint8Array.of(0b101), dictionary: { ...entries, name: "" } });
  assert.deepEqual(blocksToColumns([{ rows: 3, columns: [column] }])["x"], Float64Array.of(2, NaN, 0.5), "entries that no row has");
});

test("what values become in an array does not depend on others in their column", () => {
  const parts = [[{ x: new Int32(1) }, { x: 0.5 }], [{ x: "a" }]];
  assert.deepEqual(toColumns(parts, { promoteValues: false })["x"], [new Int32(1), new Double(0.5), "a"]);
  assert.deepEqual(toColumns([parts.flat()], { promoteValues: false })["x"], [new Int32(1), new Double(0.5), "a"]);
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

// The block format: round trips, and typed errors for a damaged header or directory.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as B from "../src/block.ts";
import { BadValueError } from "../src/errors.ts";
import { blockToDocuments, columnReader, dateReader } from "../src/rows.ts";
import { blocksToColumns } from "../src/typed.ts";

const text = (s: string): Uint8Array => new TextEncoder().encode(s);

function column(name: string, type: number, rows: number, data: B.ColumnData, rest: Partial<B.Column> = {}): B.Column {
  return { name, type, rows, data, presence: undefined, aux: undefined, dictionary: undefined, ...rest };
}

/** Three rows of every type, with and without presence, and dictionaries. */
function sample(): B.Column[] {
  const words = column("", B.STRING, 2, Uint32Array.of(0, 3, 5), { aux: text("one2!") });
  const values = column("", B.BSON, 2, Uint32Array.of(0, 1, 6), { aux: Uint8Array.of(10, 16, 7, 0, 0, 0) });
  const presence = Uint8Array.of(0b101);
  return [
    column("f", B.F64, 3, Float64Array.of(1.5, NaN, -0)),
    column("i", B.I32, 3, Int32Array.of(1, 0, -3), { presence }),
    column("l", B.I64, 3, BigInt64Array.of(1n, -(2n ** 63n), 2n ** 53n + 1n)),
    column("d", B.DATE, 3, BigInt64Array.of(0n, -1n, 1_700_000_000_000n)),
    column("b", B.BOOL, 3, Uint8Array.of(1, 0, 0), { presence }),
    column("s", B.STRING, 3, Uint32Array.of(0, 1, 1, 4), { aux: text("a°b"), presence }),
    column("o", B.OBJECT_ID, 3, Uint8Array.from({ length: 36 }, (_, i) => i)),
    column("v", B.BSON, 3, Uint32Array.of(0, 1, 1, 6), { aux: Uint8Array.of(10, 16, 7, 0, 0, 0), presence }),
    column("t", B.DATE_F64, 3, Float64Array.of(1, 2, 8.64e15)),
    column("w", B.STRING, 3, Uint32Array.of(1, 0, 1), { dictionary: words }),
    column("x", B.BSON, 3, Uint32Array.of(1, 0, 0), { dictionary: values, presence }),
    column("größe", B.F64, 3, Float64Array.of(1, 2, 3)),
  ];
}

/** Reads everything, including lazily checked parts. */
function readAll(bytes: Uint8Array): void {
  const block = B.decodeBlock(bytes);
  blockToDocuments(block);
  blocksToColumns([block], {}, [columnReader, dateReader]);
}

test("every type survives the round trip", () => {
  const columns = sample();
  const decoded = B.decodeBlock(B.encodeBlock(3, columns));
  assert.equal(decoded.rows, 3);
  assert.deepEqual(decoded.columns, columns);
});

test("every section starts at a multiple of eight and the length is in the header", () => {
  const bytes = B.encodeBlock(3, sample());
  const words = new Uint32Array(bytes.buffer);
  assert.equal(words[3], bytes.length);
  for (let i = 0; i < words[2]!; i++) {
    for (const field of [0, 3, 4, 6]) assert.equal(words[4 + i * 8 + field]! % 8, 0);
  }
});

test("columns are views into the block's own bytes", () => {
  const bytes = B.encodeBlock(3, sample());
  for (const { data } of B.decodeBlock(bytes).columns) assert.equal(data.buffer, bytes.buffer);
});

test("a block inside a larger buffer is read", () => {
  const bytes = B.encodeBlock(3, sample());
  for (let shift = 0; shift < 16; shift++) {
    const larger = new Uint8Array(bytes.length + 32);
    larger.set(bytes, shift);
    assert.deepEqual(B.decodeBlock(larger.subarray(shift, shift + bytes.length)).columns, sample());
  }
});

test("a block may have no rows or no columns", () => {
  assert.deepEqual(B.decodeBlock(B.encodeBlock(0, [])), { rows: 0, columns: [] });
  assert.deepEqual(blockToDocuments(B.decodeBlock(B.encodeBlock(2, []))), [{}, {}]);
  const empty = column("s", B.STRING, 0, Uint32Array.of(0), { aux: new Uint8Array(0) });
  assert.deepEqual(B.decodeBlock(B.encodeBlock(0, [empty])).columns, [empty]);
});

test("a truncated block is refused", () => {
  const bytes = B.encodeBlock(3, sample());
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => readAll(bytes.slice(0, length)), BadValueError, `length ${length}`);
  }
  // Even if the header has the new length.
  for (let length = 16; length < bytes.length; length++) {
    const cut = bytes.slice(0, length);
    new DataView(cut.buffer).setUint32(12, length, true);
    try {
      readAll(cut);
    } catch (error) {
      assert.ok(error instanceof BadValueError, `length ${length}: ${String(error)}`);
    }
  }
});

const broken: [string, (columns: B.Column[]) => B.Column[]][] = [
  ["an unknown type", (c) => [{ ...c[0]!, type: 10 }]],
  ["type zero", (c) => [{ ...c[0]!, type: 0 }]],
  ["too little data", (c) => [{ ...c[0]!, data: new Float64Array(2) }]],
  ["too much data", (c) => [{ ...c[6]!, data: new Uint8Array(37) }]],
  ["too few offsets", (c) => [{ ...c[5]!, data: Uint32Array.of(0, 1, 4) }]],
  ["too few indexes", (c) => [{ ...c[9]!, data: Uint32Array.of(1, 0) }]],
];
for (const [name, change] of broken) {
  test(`${name} is refused`, () => {
    assert.throws(() => readAll(B.encodeBlock(3, change(sample()))), (error: unknown) => error instanceof BadValueError && error.code === 2);
  });
}

test("text that is not UTF-8 is refused when it is read", () => {
  const bad = column("s", B.STRING, 3, Uint32Array.of(0, 1, 2, 3), { aux: Uint8Array.of(0xff, 65, 66) });
  const split = column("s", B.STRING, 3, Uint32Array.of(0, 1, 2, 2), { aux: text("°") });
  for (const each of [bad, split]) assert.throws(() => readAll(B.encodeBlock(3, [each])), BadValueError);
});

test("a block whose header or directory is damaged is read, or refused with a typed error", () => {
  const original = B.encodeBlock(3, sample());
  let seed = 20_251_121;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  let refused = 0;
  for (let round = 0; round < 30_000; round++) {
    const bytes = original.slice();
    for (let change = random(3) + 1; change > 0; change--) {
      const at = random(16 + 32 * 12);
      if (random(4) === 0) new DataView(bytes.buffer).setUint32(at & ~3, [0, 1, 2 ** 32 - 1, 2 ** 31, bytes.length, random(600)][random(6)]!, true);
      else bytes[at] = random(3) ? bytes[at]! ^ (1 << random(8)) : random(256);
    }
    try {
      B.decodeBlock(bytes);
    } catch (error) {
      refused++;
      if (!(error instanceof BadValueError)) throw error;
    }
  }
  assert.ok(refused > 10_000 && refused < 30_000, `${refused} refused`);
});

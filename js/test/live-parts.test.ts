// Which collections a live query reads, what ends its commands, and which results are equal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Decimal128, Int32, Long, ObjectId } from "bson";
import { collectionsOf, divided, isSame } from "../src/live-parts.ts";

test("a command reads its own collection and those of its stages, however deep", () => {
  const of = (command: object): string[] => [...collectionsOf(command)].sort();
  assert.deepEqual(of({ find: "a", filter: { $expr: { $eq: ["$x", 1] } } }), ["a"]);
  assert.deepEqual(of({ find: "system.buckets.a" }), ["a"]);
  const inner = [{ $lookup: { from: { db: "d", coll: "c" }, pipeline: [{ $unionWith: "e" }] } }];
  assert.deepEqual(of({ aggregate: "a", pipeline: [{ $facet: { x: [{ $unionWith: { coll: "b", pipeline: inner } }] } }, { $graphLookup: { from: "f" } }] }), ["a", "b", "c", "e", "f"]);
  assert.deepEqual(of({ aggregate: 1, pipeline: [{ $documents: [{ v: null }] }] }), []);
});

test("a signal and a time limit are no part of the query", () => {
  const { signal } = new AbortController();
  const query = { find: "a", filter: { signal: 1, maxTimeMS: 2 }, comment: "c" };
  assert.deepEqual(divided({ ...query, signal, maxTimeMS: 0 }), { query, limits: { signal, maxTimeMS: 0 } });
  assert.deepEqual(divided({ ...query, signal: undefined, maxTimeMS: undefined }), { query, limits: {} });
});

test("results with equal values are the same, whatever they are made of", () => {
  const make = (): unknown[] => [
    1, NaN, "a", null, true, [], {}, [{ at: new Date(1), m: { id: 7, site: "A" } }], { at: Float64Array.of(1, NaN), n: BigInt64Array.of(1n), s: ["x", undefined] },
    Long.fromBigInt(1n), new Int32(3),
  ];
  const [one, other] = [make(), make()];
  for (const [i, a] of one.entries()) for (const [j, b] of other.entries()) assert.equal(isSame(a, b), i === j, `${i} and ${j}`);
});

test("results that differ in a value, a length, an order or a type are not the same", () => {
  const pairs: [unknown, unknown][] = [
    [0, -0], [1, "1"], [null, undefined], [null, {}], [[1], [1, 2]], [[1, 2], [2, 1]], [{ a: 1 }, { a: 1, b: 2 }], [{ a: 1, b: 2 }, { b: 2, a: 1 }],
    [new Date(1), new Date(2)], [Float64Array.of(1), Float32Array.of(1)], [[], Float64Array.of()], [{ a: { b: [1] } }, { a: { b: [2] } }], [{ a: undefined }, { b: undefined }],
    [Decimal128.fromString("1.0"), Decimal128.fromString("1.00")], [new ObjectId("0123456789abcdef01234567"), new ObjectId("0123456789abcdef01234568")],
  ];
  for (const [one, other] of pairs) assert.equal(isSame(one, other), false, `${String(one)} and ${String(other)}`);
  assert.equal(isSame(new Set([1]), new Set([2])), false, "what cannot be looked into");
});

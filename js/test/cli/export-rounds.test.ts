// Random measurements, exported in every format and read by independent readers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { EJSON, deserialize, type Document } from "bson";
import { parse } from "csv-parse/sync";
import { file, made, timepail } from "./export-harness.js";

const ROWS = 300;
const FIELDS = ["a", "ü,\"q\"", "line\nbreak", "n", "x y", "__proto__"];
const TEXTS = ["", "plain", "a,b", 'say "x"', "line\r\nbreak", "tab\t", "ä€😀", " edge ", "null", "{}", "\u2028", "1e5"];

/** A generator of numbers from 0 to 1, determined by the seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A random value in canonical Extended JSON, the form in which both sides are compared. */
function randomValue(random: () => number, depth: number): unknown {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const hex = (chars: number): string => Array.from({ length: chars }, () => Math.floor(random() * 16).toString(16)).join("");
  const makers: (() => unknown)[] = [
    () => ({ $numberDouble: one(["1.5", "-0.0", "NaN", "Infinity", "-Infinity", "1e+21", "5e-324", "3.0", "0.1"]) }),
    () => ({ $numberInt: one(["0", "-7", "2147483647"]) }),
    () => ({ $numberLong: one(["5", "9007199254740993", "-9223372036854775808"]) }),
    () => ({ $numberDecimal: one(["1.10", "-0", "NaN", "1E+6000", "12345678901234567890.5"]) }),
    () => ({ $date: { $numberLong: one(["0", "1735689600001", "-62135596800000", "253402300800000", "8640000000000000"]) } }),
    () => one(TEXTS),
    () => one([true, false, null]),
    () => ({ $oid: hex(24) }),
    () => ({ $binary: { base64: Buffer.from(hex(8), "hex").toString("base64"), subType: one(["00", "05", "80"]) } }),
    () => ({ $binary: { base64: Buffer.from(hex(32), "hex").toString("base64"), subType: "04" } }),
    () => ({ $regularExpression: { pattern: one(["^a,b$", '"', "x/y"]), options: one(["", "i"]) } }),
    () => ({ $code: one(["() => 1, 2", "f\n"]) }),
    () => ({ $code: "g()", $scope: { v: { $numberInt: "1" } } }),
    () => ({ $timestamp: { t: 7, i: 4294967295 } }),
    () => one([{ $minKey: 1 }, { $maxKey: 1 }]),
    () => ({ $symbol: "sym" }),
    () => ({ $ref: "other", $id: { $oid: hex(24) } }),
  ];
  if (depth > 0) {
    makers.push(() => Array.from({ length: Math.floor(random() * 4) }, () => randomValue(random, depth - 1)));
    const fields = () => Object.fromEntries(FIELDS.slice(0, 5).filter(() => random() < 0.3).map((name) => [name, randomValue(random, depth - 1)]));
    makers.push(fields, fields, fields);
  }
  return one(makers)();
}

function randomRows(random: () => number): Document[] {
  return Array.from({ length: ROWS }, (_, row) => ({
    at: { $date: { $numberLong: String(1735689600000 + row * 100_000) } },
    ...(random() < 0.9 && { s: random() < 0.5 ? { id: { $numberInt: String(row % 3) }, "x,y": { z: "ä" } } : [`s${row % 2}`, { $numberInt: "4" }][row % 2] }),
    ...Object.fromEntries(FIELDS.slice(0, 5).filter(() => random() < 0.4).map((name) => [name, randomValue(random, 2)])),
  }));
}

/** A tree of Extended JSON without the types of numbers, which relaxed JSON leaves out. */
function untyped(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(untyped);
  const { $numberInt, $numberDouble, $numberLong, $date, $symbol } = value as Document;
  if ($numberInt !== undefined) return Number($numberInt);
  if ($numberDouble !== undefined) return Number($numberDouble);
  if ($numberLong !== undefined) return Number.isSafeInteger(Number($numberLong)) ? Number($numberLong) : { long: $numberLong };
  if ($symbol !== undefined) return $symbol;
  if ($date !== undefined) return { ms: typeof $date === "string" ? Date.parse($date) : Number($date.$numberLong) };
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, untyped(inner)]));
}

/** The expected cells of a row of text: the text itself, or a parsed value if the cell is JSON. */
function expectedCells(value: unknown, path: string, cells: Map<string, string | { tree: unknown }>): void {
  const tree: any = untyped(value);
  const put = (cell: string | { tree: unknown }): unknown => cells.set(path, cell);
  if (typeof tree === "string") put(tree);
  else if (tree === null) put("");
  else if (typeof tree === "number") put(Object.is(tree, -0) ? "-0" : String(tree));
  else if (typeof tree === "boolean") put(String(tree));
  else if (Array.isArray(tree)) put({ tree });
  else if ("ms" in tree) put(new Date(tree.ms).toISOString());
  else if ("long" in tree) put(tree.long);
  else if ("$oid" in tree) put(tree.$oid);
  else if ("$numberDecimal" in tree) put(tree.$numberDecimal);
  else if (Object.keys(tree).length === 0 || Object.keys(tree)[0]!.startsWith("$")) put({ tree });
  else for (const [key, inner] of Object.entries(value as Document)) expectedCells(inner, path === "" ? key : `${path}.${key}`, cells);
}

for (const seed of [1, 2, 3]) {
  test(`random measurements of every type come back from every format, seed ${seed}`, () => {
    const documents = randomRows(randomOf(seed));
    const name = `rounds${seed}`;
    const path = made(`${name}.db`, documents.map((document) => EJSON.deserialize(document, { relaxed: false })));
    const written = (ending: string, ...args: string[]): Buffer => {
      const output = file(`${name}.${ending}`);
      const { code, err } = timepail("export", path, "c", output, ...args);
      assert.equal(code, 0, err);
      return readFileSync(output);
    };
    const lines = (bytes: Buffer): string[] => bytes.toString().split("\n").slice(0, -1);
    // bson's own canonical form, for instance of decimals, with keys in one order.
    const canonical = (document: Document): Document => JSON.parse(EJSON.stringify(document, { relaxed: false }));
    const expected = documents.map((document) => canonical(EJSON.deserialize(document, { relaxed: false })));

    const bytes = written("bson");
    const fromBson: Document[] = [];
    for (let at = 0; at < bytes.length; at += bytes.readInt32LE(at)) fromBson.push(deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)), { promoteValues: false, bsonRegExp: true }));
    assert.deepEqual(fromBson.map(canonical), expected);

    const typed = lines(written("jsonl", "--canonical"));
    assert.deepEqual(typed.map((line) => canonical(EJSON.parse(line, { relaxed: false }))), expected);
    assert.deepEqual(lines(written("ndjson")).map((line) => untyped(JSON.parse(line))), expected.map(untyped));
    assert.deepEqual(JSON.parse(written("json").toString()).map(untyped), expected.map(untyped));

    for (const [ending, delimiter] of [["csv", ","], ["tsv", "\t"]] as const) {
      const rows: Record<string, string>[] = parse(written(ending), { columns: true, delimiter });
      assert.equal(rows.length, ROWS);
      const named = new Set<string>();
      rows.forEach((row, at) => {
        const cells = new Map<string, string | { tree: unknown }>();
        expectedCells(expected[at], "", cells);
        for (const [column, text] of Object.entries(row)) {
          const cell = cells.get(column) ?? "";
          if (typeof cell === "string") assert.equal(text, cell, `row ${at}, ${column}`);
          else assert.deepEqual(untyped(JSON.parse(text)), cell.tree, `row ${at}, ${column}`);
        }
        for (const column of cells.keys()) named.add(column);
      });
      assert.deepEqual(Object.keys(rows[0]!).sort(), [...named].sort());
    }
  });
}

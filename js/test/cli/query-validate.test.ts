// `timepail query` in each format, and `timepail validate` with healthy and damaged files.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Int32 } from "bson";
import { parse } from "csv-parse/sync";
import { file, inDatabase, made, timepail } from "./export-harness.js";

const START = Date.UTC(2025, 0, 1);
const plant = made("plant.db", Array.from({ length: 40 }, (_, n) => ({ at: new Date(START + n * 1000), s: { id: n % 2 }, n, text: n === 3 ? "long ".repeat(60) : `t${n}`, ...(n === 5 && { "new\nline": "\u001b[31mred" }) })));

test("a query on a pipe prints one document per line", () => {
  assert.deepEqual(timepail("query", plant, "c", '{ "n": { "$lt": 2 } }', "--sort", '{ "n": -1 }').out, '{"at":{"$date":"2025-01-01T00:00:01.000Z"},"s":{"id":1},"n":1,"text":"t1"}\n{"at":{"$date":"2025-01-01T00:00:00.000Z"},"s":{"id":0},"n":0,"text":"t0"}\n');
  assert.equal(timepail("query", plant, "c", '[{ "$match": { "n": 3 } }, { "$project": { "n": 1, "_id": 0 } }]', "--canonical").out, '{"n":{"$numberInt":"3"}}\n');
});

test("integers that no double holds keep their digits, and -0 its sign", () => {
  const wide = made("wide.db", []);
  inDatabase("wide.db", `await db.collection("c").insertMany(input)`, [{ at: new Date(START), a: 9007199254740993n, z: -0, i: new Int32(4) }]);
  assert.equal(timepail("query", wide, "c", "{}").out, '{"at":{"$date":"2025-01-01T00:00:00.000Z"},"a":{"$numberLong":"9007199254740993"},"z":-0.0,"i":4}\n');
});

test("a table has numbers at the right and is no wider than its line", () => {
  const { out } = timepail("query", plant, "c", '{ "n": { "$in": [2, 3, 10] } }', "--sort", '{ "n": 1 }', "--format", "table");
  const lines = out.split("\n").slice(0, -1);
  assert.equal(lines.length, 5);
  assert.match(lines[0]!, /^at +s\.id +n +text/);
  assert.match(lines[1]!, /^[- ]+$/);
  assert.match(lines[2]!, /^2025-01-01T00:00:02\.000Z +0 +2 {2}t2$/);
  assert.match(lines[3]!, /long long .*…$/);
  assert.match(lines[4]!, / 0 {2}10 {2}t10$/);
  for (const line of lines) assert.ok(line.length <= 120, `${line.length}`);
});

test("a table shows control characters, and says how many columns have no room", () => {
  const { out } = timepail("query", plant, "c", '{ "n": 5 }', "--format", "table");
  assert.match(out, /new\\nline/);
  assert.match(out, /\\u001b\[31mred/);
  assert.equal(out.includes("\u001b"), false);
  const many = made("columns.db", [{ at: new Date(START), ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`column${i}`, "x".repeat(20)])) }]);
  const wide = timepail("query", many, "c", "{}", "--format", "table").out;
  assert.match(wide, /^\(16 more columns do not fit/);
  for (const line of wide.split("\n").slice(1)) assert.ok(line.length <= 120);
  assert.equal(timepail("query", plant, "c", '{ "n": -1 }', "--format", "table").out, "No documents.\n");
});

test("a query writes CSV, with the columns of all its rows", () => {
  const rows = parse(timepail("query", plant, "c", '{ "n": { "$lte": 5 } }', "--sort", '{ "n": 1 }', "--format", "csv").out, { columns: true }) as Record<string, string>[];
  assert.deepEqual(Object.keys(rows[0]!), ["at", "s.id", "n", "text", "new\nline"]);
  assert.deepEqual(rows.map((row) => row["n"]), ["0", "1", "2", "3", "4", "5"]);
  assert.equal(timepail("query", plant, "c", "{}", "--format", "xml").code, 2);
  assert.equal(timepail("query", plant, "c", "{}", "--format", "csv", "--canonical").code, 2);
});

test("--explain prints the plan instead of the results", () => {
  const plan = JSON.parse(timepail("query", plant, "c", '{ "s.id": 1 }', "--explain").out);
  assert.match(JSON.stringify(plan), /"executionStats"/);
  assert.match(JSON.stringify(plan), /\$_internalUnpackBucket/);
});

test("a whole file is valid, and a collection that is not there is an error", () => {
  const { code, out } = timepail("validate", plant, "--full");
  assert.deepEqual([code, out], [0, "c: valid, 2 buckets, 1 index\n"]);
  assert.deepEqual(timepail("validate", plant, "absent").code, 1);
  assert.match(timepail("validate", plant, "absent").err, /There is no collection absent/);
  const [line] = timepail("validate", plant, "c", "--json").out.split("\n");
  assert.deepEqual([JSON.parse(line!).collection, JSON.parse(line!).valid], ["c", true]);
});

test("--database names another database of a file", () => {
  const path = made("many.db", [{ at: new Date(START), s: 1, n: 1 }]);
  writeFileSync(file("other.ndjson"), `{"at":"2025-01-01T00:00:00Z","v":7}\n`);
  assert.equal(timepail("import", path, "o", "other.ndjson", "--database", "other").code, 0);
  assert.match(timepail("stats", path).out, /^collection .*\nc +1 +1 .*\n\nOther databases of the file, for --database: other\n$/);
  assert.match(timepail("stats", path, "--database", "other").out, /^collection .*\no +1 +1 .*\n$/);
  assert.equal(timepail("query", path, "o", "{}", "--database", "other").out, '{"at":{"$date":"2025-01-01T00:00:00.000Z"},"v":7}\n');
  assert.equal(timepail("export", path, "o", "--format", "csv", "--database", "other").out, "at,v\n2025-01-01T00:00:00.000Z,7\n");
  assert.equal(timepail("export", path, "--dump", "dumped", "--database", "other").code, 0);
  assert.ok(existsSync(file("dumped/other/o.metadata.json")));
  assert.equal(timepail("validate", path, "--database", "other").out, "o: valid, 1 bucket, 0 indexes\n");
  for (const command of [["stats"], ["query", "c", "{}"], ["export", "c"], ["validate"]]) {
    const [name, ...rest] = command as [string, ...string[]];
    const { code, err } = timepail(name, path, ...rest, "--database", "absent");
    assert.deepEqual([code, err], [1, `timepail: There is no database absent in ${path}; it has many, other\n`]);
  }
  assert.match(timepail("query", path, "o", "{}").err, /There is no collection o in .*; it has c/);
});

/** A file in which the first bucket of three has damaged data. */
function damaged(name: string): string {
  const path = made(name, []);
  inDatabase(name, `
    await db.collection("c").insertMany(Array.from({ length: 30 }, (_, n) => ({ at: new Date(${START} + n * 1000), s: n % 3, n, text: "t" + n })));
    await db.flush();
    await db.close();
    const { DatabaseSync } = await import("node:sqlite");
    const file = new DatabaseSync(${JSON.stringify(path)});
    const table = file.prepare("select name from sqlite_master where type = 'table'").all().map(({ name }) => name);
    let hits = 0;
    for (const name of table) {
      const [key, value] = file.prepare("select name from pragma_table_info(?)").all(name).map(({ name }) => name);
      for (const row of file.prepare(\`select * from "\${name}"\`).all()) {
        const bytes = Buffer.from(row[value] ?? "");
        // In the binary of the column "text", one byte is replaced by an invalid type.
        const at = bytes.indexOf(Buffer.from("\\u0005text\\0", "latin1"));
        if (!bytes.includes("control") || at < 0 || hits++ > 0) continue;
        bytes[at + 6 + 5] = 0x7e;
        file.prepare(\`update "\${name}" set "\${value}" = ? where "\${key}" = ?\`).run(bytes, row[key]);
      }
    }
    file.close();
    if (hits !== 3) throw new Error(\`\${hits} buckets\`);
  `);
  return path;
}

test("damage is named with its bucket, and the exit code is 1", () => {
  const path = damaged("damaged.db");
  const { code, out } = timepail("validate", path, "--full");
  assert.equal(code, 1);
  assert.match(out, /^c: INVALID, 3 buckets, 1 index\n {2}error B15, bucket [0-9a-f]{24}, field data\.text: /);
  const json = JSON.parse(timepail("validate", path, "--full", "--json").out);
  assert.deepEqual([json.valid, json.findings.length], [false, 1]);
});

test("a repair sets aside what cannot be read, keeps the rest, and leaves a valid file", () => {
  const path = damaged("repaired.db");
  const { code, out } = timepail("validate", path, "--repair");
  assert.equal(code, 0, out);
  assert.match(out, /^c: repaired, 3 buckets, 1 index, 1 value set aside\n {2}repaired B15, bucket [0-9a-f]{24}, field data\.text: .* \(10 measurements kept\)\n/);
  const again = timepail("validate", path, "--full");
  assert.deepEqual([again.code, again.out], [0, "c: valid, 3 buckets, 1 index, 1 value set aside\n"]);
  const numbers = timepail("query", path, "c", "{}", "--sort", '{ "n": 1 }').out.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  assert.deepEqual(numbers.map(({ n }) => n), Array.from({ length: 30 }, (_, n) => n));
  assert.equal(numbers.filter(({ text }) => text === undefined).length, 10);
});

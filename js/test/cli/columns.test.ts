// Export and import of Apache Arrow and Parquet.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import * as apache from "apache-arrow";
import { Binary, Decimal128, Double, Int32, Long, ObjectId, UUID } from "bson";
import { parquetReadObjects } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import { file, inDatabase, made, timepail } from "./export-harness.js";

const START = Date.UTC(2025, 0, 1);
const rows = Array.from({ length: 300 }, (_, i) => ({
  at: new Date(START + i * 1000),
  s: { id: i % 3, site: `site ${i % 3}` },
  n: new Double(i / 8),
  count: new Int32(i),
  ...(i % 4 > 0 && {
    long: Long.fromString("9007199254740993"),
    flag: i % 2 === 0,
    text: `ä ${i}`,
    id: new ObjectId("0123456789abcdef01234567"),
    money: Decimal128.fromString("12.50"),
    uuid: new UUID("00112233-4455-6677-8899-aabbccddeeff"),
    raw: new Binary(Uint8Array.of(1, 2)),
    seen: new Date(START),
    list: [new Double(1.5), new Double(2.5)],
    place: { lat: new Double(1.5), at: new Date(START), tags: ["a"] },
    mixed: i % 2 === 0 ? "text" : new Double(0.5),
  }),
}));
made("columns.db", rows);
const plant = file("columns.db");
const stored = (name: string) => inDatabase(name, `print(await db.collection("c").find({}, { promoteValues: false, projection: { _id: 0 } }).sort({ at: 1 }).toArray())`);

for (const format of ["arrow", "parquet"]) {
  test(`measurements written as ${format} come back with their types, also compressed and through a pipe`, () => {
    const wanted = stored("columns.db");
    for (const gz of ["", ".gz"]) {
      const output = file(`whole.${format}${gz}`);
      const written = timepail("export", plant, "c", output, "--fields", Object.keys(rows[1]!).join());
      assert.deepEqual([written.code, written.out], [0, ""], written.err);
      assert.match(written.err, /^300 rows written/);
      const into = `into-${format}${gz || "-plain"}.db`;
      const read = timepail("import", file(into), "c", output, "--time-field", "at", "--meta-field", "s", "--granularity", "seconds");
      assert.equal(read.code, 0, read.err + read.out);
      assert.match(read.err, /300 rows stored in c/);
      assert.deepEqual(stored(into), wanted);
    }
  });

  test(`a damaged file of ${format} stores nothing and names the file`, () => {
    const damaged = file(`damaged.${format}`);
    writeFileSync(damaged, readFileSync(file(`whole.${format}`)).subarray(0, 3000));
    const { code, err } = timepail("import", file(`damaged-${format}.db`), "c", damaged);
    assert.equal(code, 1);
    assert.match(err, new RegExp(`damaged\\.${format}`));
  });
}

test("other programs read what was written", async () => {
  const table = apache.tableFromIPC(readFileSync(file("whole.arrow")));
  assert.deepEqual([table.numRows, table.getChild("n")!.get(9), table.getChild("count")!.get(9)], [300, 9 / 8, 9]);
  const bytes = gunzipSync(readFileSync(file("whole.parquet.gz")));
  const { buffer } = new Uint8Array(bytes);
  const found = await parquetReadObjects({ file: { byteLength: buffer.byteLength, slice: (start, end) => buffer.slice(start, end) } });
  assert.equal(found.length, 300);
  assert.deepEqual([found[9]!["at"], found[9]!["s"], found[9]!["n"], found[9]!["list"], found[8]!["text"]], [new Date(START + 9000), { id: 0, site: "site 0" }, 9 / 8, [1.5, 2.5], null]);
});

test("a file of Parquet from elsewhere is read by its types, and known by its beginning", () => {
  const from = file("elsewhere");
  const columnData = [
    { name: "at", data: [new Date(START), new Date(START + 1000)], type: "TIMESTAMP" as const },
    { name: "s", data: ["a", "b"], type: "STRING" as const },
    { name: "n", data: [1, -2], type: "INT32" as const },
    { name: "x", data: [0.5, null], type: "DOUBLE" as const },
    { name: "big", data: [2n ** 60n, 1n], type: "INT64" as const },
    { name: "about", data: [{ a: [1, 2] }, null], type: "JSON" as const },
  ];
  writeFileSync(from, new Uint8Array(parquetWriteBuffer({ columnData })));
  const { code, err, out } = timepail("import", file("elsewhere.db"), "c", from, "--meta-field", "s", "--granularity", "seconds");
  assert.equal(code, 0, err);
  assert.match(out, /Apache Parquet/);
  const [first, second] = stored("elsewhere.db");
  assert.deepEqual(first, { at: new Date(START), s: "a", n: new Int32(1), x: new Double(0.5), big: Long.fromString("1152921504606846976"), about: { a: [new Double(1), new Double(2)] } });
  assert.deepEqual(second, { at: new Date(START + 1000), s: "b", n: new Int32(-2), big: Long.fromNumber(1) });
});

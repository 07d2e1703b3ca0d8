// Exported Arrow and Parquet files, read by pyarrow, pandas, Polars and DuckDB.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { Binary, Decimal128, Int32, ObjectId } from "bson";
import { made, file, timepail } from "../cli/export-harness.ts";
import { places } from "./harness.ts";

const START = Date.UTC(2025, 0, 1);
const rows = Array.from({ length: 3000 }, (_, i) => ({
  at: new Date(START + i * 1000),
  s: { id: i % 3, site: `site ${i % 3}` },
  n: i / 8,
  count: new Int32(i),
  ...(i % 4 > 0 && {
    flag: i % 2 === 0,
    text: `ä ${i}`,
    id: new ObjectId(),
    money: Decimal128.fromString("12.50"),
    raw: new Binary(Uint8Array.of(1, 2)),
    list: [1.5, 2.5],
    place: { lat: 1.5, seen: new Date(START), tags: ["a"] },
    mixed: i % 2 === 0 ? "text" : 0.5,
  }),
}));

test("pyarrow, pandas, Polars and DuckDB read what an export has written", () => {
  made("tables.db", rows);
  for (const format of ["arrow", "parquet"]) {
    const { code, err } = timepail("export", file("tables.db"), "c", file(`tables.${format}`));
    assert.equal(code, 0, err);
  }
  const script = join(process.cwd(), "test/server/table_readers.py");
  const { status, stdout, stderr } = spawnSync("python3", [script, file("tables.arrow"), file("tables.parquet")], { env: { ...process.env, PYTHONPATH: places.python } });
  assert.equal(status, 0, stderr.toString());
  const found = JSON.parse(stdout.toString()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(found).length, 8);
  const wanted = { count: 3000, sum: (2999 * 3000) / 16, newest: START + 2_999_000, sites: ["site 0", "site 1", "site 2"], missing: 750 };
  for (const [reader, seen] of Object.entries(found)) assert.deepEqual(seen, wanted, reader);
});

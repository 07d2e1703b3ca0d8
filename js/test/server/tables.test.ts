// Exported Arrow and Parquet files, read by pyarrow, pandas, Polars, DuckDB and Observable Plot.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { tableFromIPC } from "apache-arrow";
import { Binary, Decimal128, Int32, ObjectId } from "bson";
import { open, type Collection, type Database } from "timepail";
import { insertArrow, toArrow } from "timepail/arrow";
// @ts-expect-error an example without types
import { toDuckDB } from "../../examples/guides/arrow.mjs";
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

/** A package of the folder with clients. */
const required = createRequire(join(places.packages, "index.js"));

/** A week of two stations. */
async function weather(db: Database): Promise<Collection<any>> {
  const collection = await db.createCollection<any>("weather", { timeseries: { timeField: "at", metaField: "station" } });
  await collection.insertMany(Array.from({ length: 2 * 7 * 24 }, (_, i) => ({ at: new Date(START + (i >> 1) * 3_600_000), station: i % 2 ? "roof" : "cellar", temp: (i % 2 ? 20 : 10) + (i % 48) / 8, count: new Int32(i) })));
  return collection;
}

test("DuckDB-wasm takes the results of a cursor, and gives results to a collection", async () => {
  const own = await open("tables", { storage: "memory" });
  const collection = await weather(own);
  const { createDuckDB, NODE_RUNTIME, VoidLogger } = required("@duckdb/duckdb-wasm/blocking");
  const bundle = (name: string): object => ({ mainModule: required.resolve(`@duckdb/duckdb-wasm/dist/duckdb-${name}.wasm`), mainWorker: "" });
  const db = await createDuckDB({ mvp: bundle("mvp"), eh: bundle("eh") }, new VoidLogger(), NODE_RUNTIME);
  await db.instantiate();
  const connection = db.connect();
  await toDuckDB(connection, collection, "roof");
  const [row] = connection.query('select count(*)::int n, avg(temp) mean, epoch_ms(max("at"))::double newest, sum("count")::double total, min(station) station from weather').toArray();
  const roof = await collection.find({ station: "roof" }).toArray();
  const sum = (field: string): number => roof.reduce((all, each) => all + each[field], 0);
  assert.deepEqual({ ...row.toJSON() }, { n: 168, mean: sum("temp") / 168, newest: START + 167 * 3_600_000, total: sum("count"), station: "roof" });
  // The table that DuckDB-wasm returns is inserted unchanged.
  const hot = connection.query('select "at", station, temp * 2 as temp from weather where temp >= 25 order by "at"');
  const stored = await own.createCollection<any>("hot", { timeseries: { timeField: "at", metaField: "station" } });
  const { insertedCount } = await insertArrow(stored, hot);
  assert.deepEqual(await stored.find({}, { projection: { _id: 0 } }).sort({ at: 1 }).toArray(), roof.filter(({ temp }) => temp >= 25).map(({ at, station, temp }) => ({ at, station, temp: temp * 2 })));
  assert.equal(insertedCount, 28);
  connection.close();
  await own.close();
});

test("Observable Plot draws the table of a cursor", async () => {
  const own = await open("plots", { storage: "memory" });
  const collection = await weather(own);
  // Import the file that package.json names as its module, because the one for `require` is made for pages.
  const Plot = await import(pathToFileURL(join(places.packages, "@observablehq/plot/src/index.js")).href);
  const { document } = required("linkedom").parseHTML("<body></body>");
  const table = tableFromIPC(await toArrow(collection.find().sort({ at: 1 })));
  const drawn = Plot.plot({ document, marks: [Plot.lineY(table, { x: "at", y: "temp", stroke: "station" }), Plot.dot(table, { x: "at", y: "count" })] });
  const lines = [...drawn.querySelectorAll('[aria-label="line"] path')].map((path: any) => path.getAttribute("d").split(/[ML]/).slice(1));
  assert.deepEqual(lines.map(({ length }) => length), [168, 168]);
  assert.ok(lines.flat().every((point: string) => /^[\d.]+,[\d.]+$/.test(point)), String(lines[0]));
  assert.equal(drawn.querySelectorAll('[aria-label="dot"] circle').length, 336);
  // The axis knows that it shows times.
  const ticks = [...drawn.querySelectorAll('[aria-label="x-axis tick label"] text')].map((text: any) => text.textContent);
  assert.ok(ticks.some((text) => text.includes("Jan")), String(ticks));
  await own.close();
});

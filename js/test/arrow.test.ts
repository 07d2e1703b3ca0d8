// timepail/arrow: results, read by Apache Arrow's own library, and inserts of Arrow tables from other libraries.

import assert from "node:assert/strict";
import test from "node:test";
import * as flechette from "@uwdata/flechette";
import * as apache from "apache-arrow";
import { Binary, Decimal128, Double, Int32, Long, ObjectId, UUID } from "bson";
import { open, type Collection, type Database, type Document } from "timepail";
import { insertArrow, toArrow } from "timepail/arrow";

const TIMES = { timeseries: { timeField: "at", metaField: "s" } } as const;
const at = (minute: number): Date => new Date(Date.UTC(2025, 0, 1, 0, minute));
const classes = { promoteValues: false } as const;

let databases = 0;

async function database(): Promise<Database> {
  return open(`arrow.${++databases}`, { storage: "memory" });
}

async function collectionOf(db: Database, name: string, documents: Document[]): Promise<Collection<any>> {
  const collection = await db.createCollection<any>(name, TIMES);
  if (documents.length > 0) await collection.insertMany(documents as any);
  return collection;
}

/** The rows of an Arrow file or stream, read by Apache Arrow's library. */
const rowsOf = (bytes: Uint8Array): Document[] => apache.tableFromIPC(bytes).toArray().map((row: any) => plain(row.toJSON()));

function plain(value: any): any {
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  if (typeof value.toJSON === "function") return plain(value.toJSON());
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

const typesOf = (bytes: Uint8Array): Record<string, string> => Object.fromEntries(apache.tableFromIPC(bytes).schema.fields.map(({ name, type }) => [name, String(type)]));

const EVERY_TYPE: Document[] = [
  {
    at: at(0),
    s: { site: "north", id: 7 },
    double: 1.5,
    int: new Int32(-3),
    long: 2n ** 60n,
    flag: true,
    text: "é",
    id: new ObjectId("0123456789abcdef01234567"),
    money: Decimal128.fromString("12.50"),
    uuid: new UUID("00112233-4455-6677-8899-aabbccddeeff"),
    raw: new Binary(Uint8Array.of(0, 255)),
    seen: at(5),
    place: { lat: 1.5, tags: ["a", "b"] },
    list: [1.5, 2],
    mixed: 1.5,
    nothing: null,
  },
  { at: at(1), s: { site: "south" }, mixed: "text", place: { tags: [] }, list: [], flag: false, nothing: null },
  { at: at(2) },
];

test("each type of BSON has its type in Arrow, and what is missing is null", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", EVERY_TYPE);
  const bytes = await toArrow(collection.find({}, { projection: { _id: 0 } }).sort({ at: 1 }));
  const types = typesOf(bytes);
  assert.deepEqual(
    { ...types },
    {
      at: "Timestamp<MILLISECOND, UTC>",
      s: "Struct<{id:Float64, site:Dictionary<Int32, Utf8>}>",
      double: "Float64",
      int: "Int32",
      long: "Int64",
      flag: "Bool",
      text: "Utf8",
      id: "Dictionary<Int32, Utf8>",
      money: "Dictionary<Int32, Utf8>",
      uuid: "Dictionary<Int32, Utf8>",
      raw: "Binary",
      seen: "Timestamp<MILLISECOND, UTC>",
      place: "Struct<{lat:Float64, tags:List<Utf8>}>",
      list: "List<Float64>",
      mixed: "Dictionary<Int32, Utf8>",
      nothing: "Null",
    },
  );
  const [first, second, third] = rowsOf(bytes);
  assert.deepEqual(first!["s"], { id: 7, site: "north" });
  assert.equal(first!["long"], 2n ** 60n);
  assert.equal(first!["money"], "12.50");
  assert.equal(first!["uuid"], "00112233-4455-6677-8899-aabbccddeeff");
  assert.equal(first!["id"], "0123456789abcdef01234567");
  assert.deepEqual([...first!["raw"]], [0, 255]);
  assert.equal(Number(first!["seen"]), at(5).getTime());
  assert.deepEqual([first!["mixed"], second!["mixed"]], ["1.5", '"text"']);
  assert.deepEqual(second!["s"], { id: null, site: "south" });
  assert.deepEqual([second!["double"], second!["int"], second!["text"], third!["s"], third!["place"]], [null, null, null, null, null]);
  await db.close();
});

test("what was written as Arrow comes back as it was, in both formats and from both libraries' tables", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", EVERY_TYPE);
  const read = (from: Collection<any>): Promise<Document[]> => from.find({}, { ...classes, projection: { _id: 0, nothing: 0 } }).sort({ at: 1 }).toArray();
  const wanted = await read(collection);
  for (const format of ["stream", "file"] as const) {
    const bytes = await toArrow(collection.find(), { format });
    const inputs = { bytes, buffer: bytes.slice().buffer, flechette: flechette.tableFromIPC(bytes, { useBigInt: true }), apache: apache.tableFromIPC(bytes) };
    for (const [kind, input] of Object.entries(inputs)) {
      const other = await collectionOf(db, `${kind}-${format}`, []);
      assert.deepEqual(await insertArrow(other, input as never), { acknowledged: true, insertedCount: 3 }, kind);
      assert.deepEqual(await read(other), wanted, `${kind} ${format}`);
    }
  }
  await db.close();
});

test("results of many batches are one table, whatever the columns of each batch", async () => {
  const db = await database();
  const rows = Array.from({ length: 5000 }, (_, i) => ({
    at: at(i),
    s: `sensor ${i % 7}`,
    x: i % 3 === 0 ? undefined : i / 8,
    n: i < 2500 ? new Int32(i) : new Double(i + 0.5),
    wide: i < 2500 ? new Int32(i) : Long.fromNumber(i),
    late: i < 4000 ? undefined : `text ${i}`,
    state: i % 2 ? "on" : "off",
    ok: i % 5 === 0 ? undefined : i % 2 === 0,
  }));
  const collection = await collectionOf(db, "c", rows);
  for (const batchSize of [100, 1999, 10_000]) {
    const bytes = await toArrow(collection.find({}, { projection: { _id: 0 }, batchSize }).sort({ at: 1 }));
    const found = rowsOf(bytes);
    assert.equal(found.length, 5000);
    const types = typesOf(bytes);
    assert.deepEqual([types["n"], types["wide"], types["ok"], types["x"]], ["Float64", "Int64", "Bool", "Float64"]);
    for (const i of [0, 1, 2, 99, 100, 1998, 1999, 2499, 2500, 3999, 4000, 4999]) {
      const { s, x, n, wide, late, state, ok } = found[i]!;
      assert.deepEqual([s, x, n, wide], [`sensor ${i % 7}`, i % 3 === 0 ? null : i / 8, i < 2500 ? i : i + 0.5, BigInt(i)], `row ${i}`);
      assert.deepEqual([late, state, ok], [i < 4000 ? null : `text ${i}`, i % 2 ? "on" : "off", i % 5 === 0 ? null : i % 2 === 0], `row ${i}`);
      assert.equal(Number(found[i]!["at"]), at(i).getTime());
    }
  }
  await db.close();
});

test("a result without rows is a table without rows, and aggregations have their columns", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", EVERY_TYPE);
  const empty = apache.tableFromIPC(await toArrow(collection.find({ double: 99 })));
  assert.equal(empty.numRows, 0);
  assert.ok(empty.schema.names.includes("at"));
  const grouped = rowsOf(await toArrow(collection.aggregate([{ $group: { _id: "$s.site", n: { $sum: 1 } } }, { $sort: { _id: 1 } }])));
  assert.deepEqual(grouped, [{ _id: null, n: 1 }, { _id: "north", n: 1 }, { _id: "south", n: 1 }]);
  await assert.rejects(toArrow(collection.find(), { format: "feather" as never }), /`format` is "stream" or "file"/);
  await db.close();
});

test("the types of other programs are stored as the nearest ones of BSON", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", []);
  const { timestamp, TimeUnit, columnFromArray, tableFromColumns, tableToIPC } = flechette;
  const ms = at(3).getTime();
  const column = (type: any, ...values: unknown[]): any => columnFromArray(values, type);
  const table = tableFromColumns({
    at: column(timestamp(TimeUnit.SECOND), ms, ms + 1000),
    s: column(flechette.dictionary(flechette.utf8()), "a", "b"),
    micro: column(timestamp(TimeUnit.MICROSECOND, "Europe/Berlin"), ms + 0.5, null),
    nano: column(timestamp(TimeUnit.NANOSECOND), ms, null),
    day: column(flechette.dateDay(), ms, null),
    byte: column(flechette.int8(), -1, 127),
    short: column(flechette.uint16(), 65535, null),
    word: column(flechette.uint32(), 4294967295, 1),
    big: column(flechette.uint64(), 5n, null),
    half: column(flechette.float16(), 1.5, null),
    single: column(flechette.float32(), 0.5, -2),
    price: column(flechette.decimal128(9, 2), 12.25, null),
    large: column(flechette.largeUtf8(), "x", null),
    list: column(flechette.list(flechette.int32()), [1, 2], null),
    nothing: column(flechette.nullType(), null, null),
  });
  await insertArrow(collection, tableToIPC(table, {})!, { ordered: false });
  const [first, second] = await collection.find({}, { ...classes, projection: { _id: 0 } }).sort({ at: 1 }).toArray();
  assert.deepEqual(first, {
    at: at(3),
    s: "a",
    micro: at(3),
    nano: at(3),
    day: new Date(Date.UTC(2025, 0, 1)),
    byte: new Int32(-1),
    short: new Int32(65535),
    word: Long.fromNumber(4294967295),
    big: Long.fromNumber(5),
    half: new Double(1.5),
    single: new Double(0.5),
    price: Decimal128.fromString("12.25"),
    large: "x",
    list: [new Int32(1), new Int32(2)],
  });
  assert.deepEqual(second, { at: new Date(ms + 1000), s: "b", byte: new Int32(127), word: Long.fromNumber(1), single: new Double(-2) });
  await db.close();
});

test("the metadata of all rows may be an option, and a signal ends an insert", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", []);
  const table = flechette.tableFromColumns({ at: flechette.columnFromArray([at(0).getTime()], flechette.timestamp()), x: flechette.columnFromArray(Float64Array.of(1)) });
  await insertArrow(collection, flechette.tableToIPC(table, {})!, { meta: { id: 7 } });
  assert.deepEqual(await collection.distinct("s"), [{ id: 7 }]);
  const reason = new Error("enough");
  await assert.rejects(insertArrow(collection, table as never, { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(await collection.countDocuments(), 1);
  await db.close();
});

test("what no type of BSON holds is refused by the name of its column, and nothing is stored", async () => {
  const db = await database();
  const collection = await collectionOf(db, "c", []);
  const times = flechette.columnFromArray([at(0).getTime()], flechette.timestamp());
  const refuse = (column: any, message: RegExp): Promise<void> =>
    assert.rejects(insertArrow(collection, flechette.tableToIPC(flechette.tableFromColumns({ at: times, took: column }), {})!), message);
  await refuse(flechette.columnFromArray([5n], flechette.duration(flechette.TimeUnit.SECOND)), /Column "took" has the Arrow type Duration, which no BSON type holds/);
  await refuse(flechette.columnFromArray([2n ** 63n], flechette.uint64()), /Column "took": 9223372036854775808 does not fit/);
  await assert.rejects(insertArrow(collection, { rows: [] } as never), /insertArrow takes Arrow IPC bytes or an Arrow table/);
  await assert.rejects(insertArrow(db.collection("absent"), flechette.tableToIPC(flechette.tableFromColumns({ at: times }), {})!), { codeName: "NamespaceNotFound" });
  assert.equal(await collection.countDocuments(), 0);
  await db.close();
});

test("doubles in columns of mixed types stay doubles", async () => {
  const db = await database();
  const mixed = [new Double(1), "z", new Int32(2), new Double(-0), new Double(1e21), new Double(0.5), { a: [new Double(3), new Int32(4), null] }];
  const from = await collectionOf(db, "from", mixed.map((v, i) => ({ at: at(i), v })));
  const to = await collectionOf(db, "to", []);
  await insertArrow(to, await toArrow(from.find().sort({ at: 1 })));
  assert.deepEqual(await to.find({}, classes).sort({ at: 1 }).toArray(), await from.find({}, classes).sort({ at: 1 }).toArray());
  await db.close();
});

test("lists and fields of objects that are always null or empty are kept", async () => {
  // The Arrow library has no builder for nulls without a type inside lists and structs.
  const db = await database();
  const rows = [[], [null], [null, null], { x: null, y: 1 }, { x: [], y: 1 }, { x: { z: null }, y: 1 }].map((v, i) => ({ at: at(i), [`v${i}`]: v }));
  const from = await collectionOf(db, "from", rows);
  const to = await collectionOf(db, "to", []);
  await insertArrow(to, await toArrow(from.find().sort({ at: 1 })));
  const wanted = [[], [null], [null, null], { y: 1 }, { x: [], y: 1 }, { x: {}, y: 1 }].map((v, i) => ({ at: at(i), [`v${i}`]: v }));
  assert.deepEqual(await to.find().sort({ at: 1 }).toArray(), wanted);
  await db.close();
});

test("times of any unit are cut to the millisecond in which they lie", async () => {
  // Doubles do not hold nanoseconds exactly, so a third of all times was a millisecond too early.
  const db = await database();
  const ms = [1700000000001, 1700000000129, 1699999999999, 1, 0, -1, -1700000000001];
  const units: [string, flechette.TimeUnit_, bigint, bigint[]][] = [
    ["ms", flechette.TimeUnit.MILLISECOND, 1n, [0n]],
    ["us", flechette.TimeUnit.MICROSECOND, 1_000n, [0n, 1n, 999n]],
    ["ns", flechette.TimeUnit.NANOSECOND, 1_000_000n, [0n, 1n, 999_999n]],
  ];
  for (const [name, unit, perMs, rests] of units) {
    const times = ms.flatMap((time) => rests.map((rest) => BigInt(time) * perMs + rest));
    // The builder of the library would take milliseconds.
    const type = flechette.timestamp(unit, "UTC");
    const Batch = flechette.batchType(type, {}) as unknown as new (options: object) => any;
    const column = new flechette.Column([new Batch({ length: times.length, nullCount: 0, type, validity: new Uint8Array(0), values: BigInt64Array.from(times) })], type);
    const numbers = flechette.columnFromArray(times.map((_, n) => n), flechette.int32());
    const fields = [flechette.field("at", type), flechette.field("other", type), flechette.field("n", flechette.int32())];
    const table = new flechette.Table({ version: 4, endianness: 0, fields, metadata: null } as never, [column, column, numbers]);
    const to = await collectionOf(db, name, []);
    await insertArrow(to, flechette.tableToIPC(table, {})!);
    const found = await to.find().sort({ n: 1 }).toArray();
    const wanted = ms.flatMap((time) => rests.map(() => time));
    assert.deepEqual(found.map(({ at: time }) => time.getTime()), wanted, name);
    assert.deepEqual(found.map(({ other }) => other.getTime()), wanted, `${name}, not the time field`);
  }
  await db.close();
});

// `timepail export`: the output, its destination, and the exit codes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Double, deserialize } from "bson";
import { parse } from "csv-parse/sync";
import { file, folder, inDatabase, made, started, timepail } from "./export-harness.js";

const START = Date.UTC(2025, 0, 1);
const rows = (count: number, from = 0) => Array.from({ length: count }, (_, i) => ({ at: new Date(START + (from + i) * 1000), s: { id: (from + i) % 3, site: "ä, \"b\"" }, n: from + i }));
/** The incomplete files in the folder. */
const unfinished = () => readdirSync(folder).filter((name) => name.endsWith(".unfinished"));
const lines = (text: string) => text.split("\n").slice(0, -1);

const plant = made("plant.db", [...rows(50), ...rows(50, 50)].reverse());

test("the ending of the output names the format, and .gz compresses", () => {
  for (const [ending, read] of [
    ["csv", (text: string) => parse(text, { columns: true }).map((row: any) => Number(row.n))],
    ["tsv", (text: string) => parse(text, { columns: true, delimiter: "\t" }).map((row: any) => Number(row.n))],
    ["ndjson", (text: string) => lines(text).map((line) => JSON.parse(line).n)],
    ["jsonl", (text: string) => lines(text).map((line) => JSON.parse(line).n)],
    ["json", (text: string) => JSON.parse(text).map((row: any) => row.n)],
  ] as const) {
    for (const gz of ["", ".gz"]) {
      const output = file(`endings.${ending}${gz}`);
      const { code, out, err } = timepail("export", plant, "c", output);
      assert.deepEqual([code, out], [0, ""], err);
      assert.match(err, /^100 rows written to .* in [0-9.]+ s, [0-9,]+\/s\n$/);
      const bytes = readFileSync(output);
      assert.deepEqual(read((gz ? gunzipSync(bytes) : bytes).toString()), Array.from({ length: 100 }, (_, n) => n), ending + gz);
    }
  }
  assert.match(timepail("export", plant, "c", file("x.unknown")).err, /is not a known format/);
  assert.equal(timepail("export", plant, "c", "--format", "xml").code, 2);
  assert.deepEqual(unfinished(), []);
});

test("without an output, or with -, rows go to standard output and nothing is said with --quiet", () => {
  const plain = timepail("export", plant, "c", "--quiet");
  assert.deepEqual([plain.code, plain.err, lines(plain.out).length], [0, "", 100]);
  assert.equal(timepail("export", plant, "c", "-", "--quiet").out, plain.out);
  assert.equal(gunzipSync(timepail("export", plant, "c", "--gzip").bytes).toString(), plain.out);
});

test("filters, pipelines, fields, sorts and limits choose the rows", () => {
  const csv = (...args: string[]) => timepail("export", plant, "c", "--format", "csv", ...args).out;
  assert.equal(csv("--query", '{ "s.id": 1 }', "--limit", "2", "--fields", "n,s.id"), "n,s.id\n1,1\n4,1\n");
  assert.equal(csv("--sort", '{ "n": -1 }', "--limit", "2", "--fields", "n"), "n\n99\n98\n");
  assert.equal(csv("--pipeline", '[{ "$group": { "_id": "$s.id", "sum": { "$sum": "$n" } } }]', "--sort", '{ "_id": 1 }'), "_id,sum\n0,1683\n1,1617\n2,1650\n");
  assert.equal(csv("--pipeline", '[{ "$match": { "n": { "$lt": 2 } } }]', "--sort", '{ "n": -1 }', "--fields", "n"), "n\n1\n0\n");
  assert.equal(csv("--query", '{ "at": { "$gte": { "$date": "2025-01-01T00:01:39Z" } } }', "--fields", "at"), "at\n2025-01-01T00:01:39.000Z\n");
  assert.deepEqual(timepail("export", plant, "c", "--limit", "1", "--fields", "s.id").out, '{"s":{"id":0}}\n');
  assert.equal(lines(csv("--sort", "{}")).length, 101);
  for (const args of [["--limit", "-1"], ["--query", "nonsense"], ["--query", "[]"], ["--pipeline", "{}"], ["--query", "{}", "--pipeline", "[]"], ["--fields", "a,,b"], ["--fields", "a,a"], ["extra", "more"]]) {
    assert.equal(timepail("export", plant, "c", ...args).code, 2, args.join(" "));
  }
});

test("a field that comes late has a column, and only fields that the rows have get one", () => {
  const late = made("late.db", [{ at: new Date(START), s: 1, a: 1 }, { at: new Date(START + 1), s: { x: { y: 2 } }, a: { deep: { er: 1 }, b: {} } }, { at: new Date(START + 2), a: {}, late: "z" }, { at: new Date(START + 3), s: null, a: [1, { b: 2 }], t: true }]);
  const { out, err } = timepail("export", late, "c", "--format", "csv");
  const [names, ...found] = parse(out) as string[][];
  assert.deepEqual([...names!].sort(), ["a", "a.b", "a.deep.er", "at", "late", "s", "s.x.y", "t"], err);
  assert.equal(names![0], "at");
  const cell = (row: number, name: string) => found[row]![names!.indexOf(name)];
  assert.deepEqual([cell(0, "s"), cell(0, "a"), cell(0, "late")], ["1", "1", ""]);
  assert.deepEqual([cell(1, "s.x.y"), cell(1, "a.deep.er"), cell(1, "a.b"), cell(1, "s")], ["2", "1", "{}", ""]);
  assert.deepEqual([cell(2, "a"), cell(2, "late")], ["{}", "z"]);
  assert.deepEqual([cell(3, "a"), cell(3, "t"), cell(3, "s")], ['[1,{"b":2}]', "true", ""]);
  assert.equal(timepail("export", late, "c", "--format", "csv", "--query", '{ "s": 1 }').out, "at,s,a\n2025-01-01T00:00:00.000Z,1,1\n");
  assert.equal(timepail("export", late, "c", "--format", "csv", "--query", '{ "a.deep.er": 1 }', "--fields", "a,n").out, 'a,n\n"{""deep"":{""er"":1},""b"":{}}",\n');
});

test("documents between other types have columns, although a summary shows only the least and the greatest value", () => {
  const values = [1, { in: 1 }, true, { $ref: "r", $id: 7, more: 1 }, {}];
  for (const [from, to] of [[0, 3], [1, 4], [3, 5], [2, 5]]) {
    const name = `between${from}.db`;
    made(name, values.slice(from, to).map((v, i) => ({ at: new Date(START + i), v })));
    // All fields are in one bucket and one summary.
    inDatabase(name, `const rows = await db.collection("c").find({}, { promoteValues: false }).toArray(); await db.collection("c").drop();
      await (await db.createCollection("c", { timeseries: { timeField: "at" } })).insertMany(rows);`);
    const { code, out, err } = timepail("export", file(name), "c", "--format", "csv");
    assert.equal(code, 0, err);
    assert.equal((parse(out) as string[][]).length, to! - from! + 1);
  }
});

test("text cells are quoted where they must be, and a missing value is not an empty string", () => {
  const texts = made("texts.db", [{ at: new Date(START), t: "" }, { at: new Date(START + 1) }, { at: new Date(START + 2), t: 'a,"b"\r\nc' }, { at: new Date(START + 3), t: "tab\there" }]);
  assert.equal(timepail("export", texts, "c", "--format", "csv", "--fields", "at,t").out, '2025-01-01T00:00:00.000Z,""\n2025-01-01T00:00:00.001Z,\n2025-01-01T00:00:00.002Z,"a,""b""\r\nc"\n2025-01-01T00:00:00.003Z,tab\there\n'.replace(/^/, "at,t\n"));
  assert.equal(timepail("export", texts, "c", "--format", "tsv", "--fields", "t").out, 't\n""\n""\n"a,""b""\r\nc"\n"tab\there"\n');
});

test("whole doubles beyond 2^53 are written with an exponent, and an import reads them as they were", () => {
  // Without one, an import took them for integers: it refused those of 20 digits, and others became 64-bit integers.
  const values = [2 ** 53, 123456789012345680, 123456789012345680000, -(2 ** 70), 1e21, 2 ** 53 - 1];
  const wide = made("wide.db", values.map((n, i) => ({ at: new Date(START + i), n: new Double(n) })));
  assert.equal(lines(timepail("export", wide, "c", "--fields", "n").out)[1], '{"n":1.2345678901234568e+17}');
  for (const ending of ["csv", "ndjson"]) {
    assert.equal(timepail("export", wide, "c", file(`wide.${ending}`)).code, 0);
    const { code, err, out } = timepail("import", file(`wide-${ending}.db`), "c", file(`wide.${ending}`), "--time-field", "at");
    assert.equal(code, 0, err);
    assert.match(out + err, /6 rows stored/);
    const types = { $project: { _id: 0, n: 1, type: { $type: "$n" } } };
    const found = inDatabase(`wide-${ending}.db`, "print(await db.collection('c').aggregate([{ $sort: { at: 1 } }, input]).toArray());", types);
    assert.deepEqual(found.map(({ n, type }: any) => [Number(n), type]), values.map((n) => [n, "double"]), ending);
  }
});

test("columns that would hold two fields, and fields inside of arrays, are errors", () => {
  const odd = made("odd.db", [{ at: new Date(START), s: { "a.b": 1, a: { b: 2 } }, list: [{ x: 1 }] }]);
  const { code, err } = timepail("export", odd, "c", file("odd.csv"));
  assert.equal(code, 1);
  assert.match(err, /Two fields of one measurement would be in the column s\.a\.b/);
  assert.match(timepail("export", odd, "c", "--format", "csv", "--fields", "list.x").err, /inside of list, which is an array/);
  assert.equal(existsSync(file("odd.csv")), false);
  assert.deepEqual(unfinished(), []);
});

test("an empty collection gives its time as the only column, and no rows", () => {
  made("empty.db", []);
  assert.equal(timepail("export", file("empty.db"), "c", "--format", "csv").out, "at\n");
  assert.equal(timepail("export", file("empty.db"), "c", "--format", "json").out, "[]\n");
  assert.equal(timepail("export", file("empty.db"), "c").out, "");
});

test("an output that exists is overwritten only with --force, and the database never", () => {
  const output = file("there.csv");
  writeFileSync(output, "mine");
  const refused = timepail("export", plant, "c", output);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /exists; --force overwrites it/);
  assert.equal(readFileSync(output, "utf8"), "mine");
  assert.equal(timepail("export", plant, "c", output, "--force").code, 0);
  assert.equal(lines(readFileSync(output, "utf8")).length, 101);
  assert.match(timepail("export", plant, "c", plant, "--format", "csv", "--force").err, /is the database/);
  mkdirSync(file("folder.csv"));
  assert.match(timepail("export", plant, "c", file("folder.csv"), "--force").err, /is a folder/);
  assert.match(timepail("export", plant, "absent", file("a.csv")).err, /There is no collection absent in .*; it has c/);
  assert.match(timepail("export", file("absent.db"), "c").err, /There is no file/);
});

test("an export that fails leaves what was there, and no half file", () => {
  const output = file("kept.csv");
  writeFileSync(output, "mine");
  const { code, err } = timepail("export", plant, "c", output, "--force", "--pipeline", '[{ "$fly": 1 }]');
  assert.equal(code, 1);
  assert.match(err, /\$fly/);
  assert.equal(readFileSync(output, "utf8"), "mine");
  assert.deepEqual(unfinished(), []);
});

const many = (() => {
  inDatabase("many.db", `
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "s" } });
    const ROWS = 20_000;
    for (let from = 0; from < 300_000; from += ROWS) {
      const at = Float64Array.from({ length: ROWS }, (_, i) => ${START} + (from + i) * 1000);
      await c.insertColumns({ at, n: at.map((_, i) => from + i) }, { meta: from % 3 });
    }
  `);
  return file("many.db");
})();

test("a reader that goes away ends an export and a query quietly", async () => {
  for (const args of [["export", many, "c"], ["export", many, "c", "--format", "csv", "--gzip"], ["query", many, "c", "{}"]]) {
    const child = started(...args);
    let err = "";
    child.stderr!.on("data", (text) => (err += text));
    await once(child.stdout!, "data");
    child.stdout!.destroy();
    assert.deepEqual([...(await once(child, "close")), err], [0, null, ""], args.join(" "));
  }
});

test("Ctrl-C removes the unfinished file and ends with 130", async () => {
  const output = file("cut.ndjson");
  const child = started("export", many, "c", output);
  const { watch } = await import("node:fs");
  const begun = new Promise<void>((resolve) => {
    const watcher = watch(folder, () => {
      if (unfinished().length === 0) return;
      watcher.close();
      resolve();
    });
  });
  await begun;
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
  assert.deepEqual([existsSync(output), unfinished()], [false, []]);
});

test("Ctrl-C ends an export whose reader does not read", async () => {
  const child = started("export", many, "c");
  await once(child.stdout!, "readable");
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
});

test("three hundred thousand rows come whole, and in the order of their times", () => {
  const { out, code } = timepail("export", many, "c", "--format", "csv", "--fields", "n", "--quiet");
  assert.equal(code, 0);
  assert.deepEqual(lines(out).slice(1).map(Number), Array.from({ length: 300_000 }, (_, n) => n));
});

test("a dump has the files of mongodump, and its buckets come back", () => {
  const from = made("dumped.db", rows(40), { expireAfterSeconds: 1e9 });
  inDatabase("dumped.db", `
    await db.collection("c").createIndex({ "s.id": 1 });
    const odd = await db.createCollection("a/b ü", { timeseries: { timeField: "t" }, dedupe: {} });
    await odd.insertMany([{ t: new Date(${START}), v: 1 }]);
  `);
  for (const gzip of [false, true]) {
    const to = file(gzip ? "dump-gz" : "dump");
    const ending = gzip ? ".gz" : "";
    const { code, err } = timepail("export", from, "--dump", to, ...(gzip ? ["--gzip"] : []));
    assert.equal(code, 0, err);
    assert.match(err, /buckets of 2 collections written/);
    const names = ["a%2Fb%20%C3%BC.metadata.json", "c.metadata.json", "system.buckets.a%2Fb%20%C3%BC.bson", "system.buckets.c.bson"].map((name) => name + ending);
    assert.deepEqual(readdirSync(`${to}/dumped`).sort(), names);
    const content = (name: string) => (gzip ? gunzipSync(readFileSync(`${to}/dumped/${name}.gz`)) : readFileSync(`${to}/dumped/${name}`));
    assert.deepEqual(JSON.parse(content("c.metadata.json").toString()), {
      options: { timeseries: { timeField: "at", metaField: "s", granularity: "seconds", bucketMaxSpanSeconds: { $numberInt: "3600" } }, expireAfterSeconds: { $numberInt: "1000000000" } },
      indexes: [
        { v: { $numberInt: "2" }, key: { s: { $numberInt: "1" }, at: { $numberInt: "1" } }, name: "s_1_at_1" },
        { v: { $numberInt: "2" }, key: { "s.id": { $numberInt: "1" } }, name: "s.id_1" },
      ],
      collectionName: "c",
      type: "timeseries",
    });
    const other = JSON.parse(content("a%2Fb%20%C3%BC.metadata.json").toString());
    assert.equal(other.options.dedupe, undefined);
    assert.ok(other.timepail.dedupe);
    const documents = [];
    const bytes = content("system.buckets.c.bson");
    for (let at = 0; at < bytes.length; at += bytes.readInt32LE(at)) documents.push(deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)), { promoteValues: false }));
    const restored = inDatabase(`restored${gzip}.db`, `
      const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "s" } });
      await db.command({ insert: "system.buckets.c", documents: input, unsafeBucketWrites: true });
      print({ valid: (await db.command({ validate: "c", full: true })).valid, rows: await c.find().sort({ at: 1 }).toArray() });
    `, documents);
    assert.equal(restored.valid, true);
    assert.deepEqual(restored.rows.map(({ n }: any) => Number(n)), rows(40).map(({ n }) => n));
  }
  assert.match(timepail("export", from, "--dump", file("dump")).err, /exists; --force overwrites it/);
  assert.equal(timepail("export", from, "c", "--dump", file("dump"), "--force").code, 0);
  assert.equal(timepail("export", from, "c", "--dump", file("other"), "--query", "{}").code, 2);
  assert.match(timepail("export", from, "--dump", from).err, /is not a folder/);
});

test("every command tells how it is called", () => {
  for (const name of ["export", "query", "validate"]) {
    const { code, out } = timepail(name, "--help");
    assert.equal(code, 0);
    assert.match(out, new RegExp(`^Usage: timepail ${name} <file>`));
    assert.match(out, new RegExp(`  timepail ${name} plant\\.db`));
  }
  assert.match(timepail("--help").out, /export <file>/);
});

// `timepail import` of text: CSV and JSON.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Double, Int32, Long, ObjectId } from "bson";
import { file, folder, fresh, piped, plainRows, rows, sorted, timepail } from "./importing.ts";

const STATIONS = `time,station,Temp °C,wind,"remark, if any"
2025-03-01 00:00,roof,4.5,3,
2025-03-01 00:00,yard,5.25,1,"said ""calm"",
then left"
2025-03-01 01:00,roof,4,,foggy
2025-03-01 01:00,yard,5,1.5,
`;
const at = (text: string): Date => new Date(text);

test("a CSV file becomes a collection by guesses, which are shown", () => {
  const db = fresh();
  const { code, out, err } = timepail(["import", db, "weather", file("stations.csv", STATIONS)]);
  assert.equal(code, 0, err);
  assert.match(out, /^stations\.csv: text, separated by commas\n\nfield +type +sample\ntime +date +2025-03-01 00:00 +time\nstation +string +roof +metadata\nTemp °C +number +4\.5\n/);
  assert.match(out, /New collection weather: time in time; metadata in station; granularity hours\.\n/);
  assert.match(err, /^4 rows stored in weather in [^\n]*\n$/);
  assert.deepEqual(plainRows(db, "weather"), sorted([
    { time: at("2025-03-01T00:00Z"), station: "roof", "Temp °C": 4.5, wind: 3 },
    { time: at("2025-03-01T01:00Z"), station: "roof", "Temp °C": 4, "remark, if any": "foggy" },
    { time: at("2025-03-01T00:00Z"), station: "yard", "Temp °C": 5.25, wind: 1, "remark, if any": 'said "calm",\nthen left' },
    { time: at("2025-03-01T01:00Z"), station: "yard", "Temp °C": 5, wind: 1.5 },
  ]));
});

test("a dry run shows the same and makes nothing", () => {
  const db = fresh();
  const { code, out, err } = timepail(["import", db, "weather", file("dry.csv", STATIONS), "--dry-run"]);
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /New collection weather/);
  assert.equal(existsSync(join(folder, db)), false);
});

test("gzip is known by its bytes, the standard input by a dash, and a collection by the name of the file", () => {
  const db = fresh();
  assert.equal(timepail(["import", db, file("My stations.csv.gz", gzipSync(STATIONS)), "--quiet"]).err, "");
  assert.equal(timepail(["import", db, "in", "-"], STATIONS.replaceAll(",", "\t")).code, 0);
  assert.equal(timepail(["import", db, "zip", "-"], gzipSync('{"at":"2025-01-01","v":1}\n')).code, 0);
  assert.equal(rows(db, "My_stations").length, 4);
  assert.equal(rows(db, "in").length, 4);
  assert.equal(rows(db, "zip").length, 1);
  assert.match(timepail(["import", db, "-"], STATIONS).err, /Missing argument: collection; standard input has no name/);
});

test("semicolons, decimal commas, seconds since 1970 and dotted names are understood", () => {
  const db = fresh();
  const text = "ts;value;station.id;station.site\n1735689600;1,5;007;A\n1735689602;2;007;\n";
  const { out } = timepail(["import", db, "few", file("few.csv", text)]);
  assert.match(out, /ts +date +1735689600 +time, seconds since 1970\n/);
  assert.deepEqual(plainRows(db, "few"), sorted([
    { ts: at("2025-01-01T00:00:02Z"), station: { id: "007" }, value: 2 },
    { ts: at("2025-01-01T00:00:00Z"), station: { id: "007", site: "A" }, value: 1.5 },
  ]));
  assert.equal(timepail(["import", db, "flat", "few.csv", "--flat"]).code, 0);
  assert.deepEqual(plainRows(db, "flat").find(({ value }) => value === 1.5), { ts: at("2025-01-01T00:00:00Z"), value: 1.5, "station.id": "007", "station.site": "A" });
});

test("options win over guesses", () => {
  const db = fresh();
  const text = "a,b,n,big,t,flag,oid,j,x\n3/4/2025 1:00 PM,p,7,9007199254740993,2,yes,0123456789abcdef01234567,\"{\"\"k\"\":1}\",no\n";
  const types = ["--types", "a=date,n=int,big=long,flag=bool,oid=objectId", "--types", "j=object,x=skip,t=string"];
  const { code, err } = timepail(["import", db, "c", file("o.csv", text), ...types, "--date-order", "dmy", "--timezone", "Europe/Berlin", "--rename", "a=at,b=id", "--meta-field", "src", "--meta", "b,t", "--granularity", "hours", "--expire-after", "18000d", "--time-field", "at"]);
  assert.equal(code, 0, err);
  assert.deepEqual(rows(db, "c"), [
    { at: at("2025-04-03T11:00:00Z"), src: { id: "p", t: "2" }, n: new Int32(7), big: Long.fromString("9007199254740993"), flag: true, oid: new ObjectId("0123456789abcdef01234567"), j: { k: new Double(1) } },
  ]);
  assert.match(timepail(["import", db, "c", "o.csv", ...types, "--date-order", "dmy", "--rename", "a=at", "--granularity", "minutes"]).err, /c exists, and its granularity is hours, not minutes/);
});

test("a collection that exists is inserted into by its own fields", () => {
  const db = fresh();
  timepail(["import", db, "weather", file("first.csv", STATIONS)]);
  const { out, code } = timepail(["import", db, "weather", file("more.csv", "stamp,station,wind\n2025-03-02,roof,1\n"), "--rename", "stamp=time"]);
  assert.equal(code, 0);
  assert.match(out, /stamp +date +2025-03-02 +time, as time\n/);
  assert.match(out, /Into the collection weather, which exists\./);
  assert.equal(rows(db, "weather").length, 5);
  assert.match(timepail(["import", db, "weather", "-"], "time,wind\n2025-03-03,2\n").out, /which exists\. No field is its metadata, station\.\n/);
  const missing = timepail(["import", db, "weather", "more.csv"]);
  assert.deepEqual([missing.code, missing.out], [2, ""]);
  assert.match(missing.err, /There is no field time for the time among stamp, station, wind: --rename <field>=time/);
});

test("bad lines are skipped, told by their numbers, and counted", () => {
  const db = fresh();
  const text = ["when,value,note", "2025-03-01,1,", 'never,2,"two\nlines"', "2025-03-02,3", '2025-03-03,4,"x"y', "2025-03-04,many,", "2025-03-05,6,"].join("\n");
  const { code, err } = timepail(["import", db, "few", file("bad.csv", text), "--types", "value=number"]);
  assert.equal(code, 0);
  assert.deepEqual(err.split("\n").slice(0, 4), ["Line 3: when: “never” is not a time", "Line 5: has 2 cells instead of 3", "Line 6: a quote is in the wrong place", "Line 7: value: “many” is not a number"]);
  assert.match(err, /\n2 rows stored in few in .*, 4 bad rows skipped\n$/);
  assert.deepEqual(plainRows(db, "few").map(({ value }) => value).sort(), [1, 6]);
});

test("of many bad lines ten are shown", () => {
  const db = fresh();
  const text = `at,v\n${"2025-01-01,1\n".repeat(30)}${"2025-01-01,x\n".repeat(25)}`;
  const { err } = timepail(["import", db, "c", file("many.csv", text), "--types", "v=number"]);
  assert.equal(err.match(/^Line \d+: v: “x” is not a number$/gm)!.length, 10);
  assert.match(err, /^Line 32: /);
  assert.match(err, /\nand 15 more\n30 rows stored in c in .*, 25 bad rows skipped\n$/);
});

test("with --strict the first bad line ends the import, and what stands before is stored", () => {
  const db = fresh();
  const text = "at,v\n2025-01-01,1\n2025-01-02,2\n2025-01-03,x\n2025-01-04,4\n";
  const { code, err } = timepail(["import", db, "c", file("strict.csv", text), "--types", "v=number", "--strict"]);
  assert.equal(code, 1);
  assert.match(err, /^Line 4: v: “x” is not a number\nStopped: 2 rows stored in c in .*, 1 bad row\n$/);
  assert.deepEqual(plainRows(db, "c").map(({ v }) => v).sort(), [1, 2]);
});

test("rows that the engine refuses are bad rows, with their lines", () => {
  const db = fresh();
  const lines = ['{"t":"2025-01-01","v":1}', "", '{"v":2}', '{"t":{"$date":"2025-01-01T00:00:01Z"},"v":3}'];
  const input = file("refused.ndjson", lines.join("\n"));
  const { code, err } = timepail(["import", db, "c", input]);
  assert.equal(code, 0);
  assert.match(err, /^Line 3: 't' must be present .*\n2 rows stored in c in .*, 1 bad row skipped\n$/);
  const strict = timepail(["import", db, "d", input, "--strict"]);
  assert.equal(strict.code, 1);
  assert.match(strict.err, /^Line 3: 't' must be present .*\nStopped: 1 row stored in d/);
  assert.deepEqual(plainRows(db, "d"), [{ t: at("2025-01-01"), v: 1 }]);
});

test("a row that spoils its batch is found among the others", () => {
  const db = fresh();
  const lines = Array.from({ length: 100 }, (_, i) => JSON.stringify({ t: `2025-01-01T00:00:${String(i % 60).padStart(2, "0")}Z`, v: i, ...(i === 66 && { "a\0b": 1 }) }));
  const { err } = timepail(["import", db, "c", file("spoilt.ndjson", lines.join("\n"))]);
  assert.match(err, /^Line 67: The field name "a\\u0000b" contains a NUL character\n99 rows stored in c/);
  assert.equal(rows(db, "c").length, 99);
});

test("lines of JSON keep their values, Extended JSON and long numbers among them", () => {
  const db = fresh();
  const lines = ['{"t":1735689600000,"big":12345678901234567,"l":{"$numberLong":"5"},"i":{"$numberInt":"6"},"n":7,"o":{"a":[1,null]},"id":{"$oid":"0123456789abcdef01234567"}}', "[1]", '{"t":'];
  const { err, out } = timepail(["import", db, "c", "-"], lines.join("\n"));
  assert.match(out, /t +date +1735689600000 +time, milliseconds since 1970\n/);
  assert.match(err, /^Line 2: is not a document\nLine 3: is not JSON: /);
  const [row] = rows(db, "c");
  assert.deepEqual([row!["big"], row!["l"], row!["i"], Number(row!["n"])], [Long.fromString("12345678901234567"), Long.fromNumber(5), new Int32(6), 7]);
  assert.deepEqual([row!["t"], row!["id"]], [at("2025-01-01"), new ObjectId("0123456789abcdef01234567")]);
  assert.deepEqual(plainRows(db, "c")[0]!["o"], { a: [1, null] });
});

test("the unit of the first numbers counts for all of them", () => {
  const db = fresh();
  const lines = [...Array.from({ length: 2500 }, (_, i) => `{"at":${1.7e9 + i}}`), '{"at":5}'];
  assert.equal(timepail(["import", db, "c", "-"], lines.join("\n")).code, 0);
  const times = rows(db, "c").map((row) => row["at"].getTime());
  assert.deepEqual([Math.min(...times), Math.max(...times)], [5000, 1.7e12 + 2_499_000]);
});

test("a JSON array may span lines as it likes", () => {
  const db = fresh();
  const text = '\n[ {"t": "2025-01-01",\n "s": "a]},[\\"" }\n,\n{"t":"2025-01-02","s":"b"}, 5\n]\n';
  const { err } = timepail(["import", db, "c", file("array.json", text)]);
  assert.match(err, /^Line 5: is not a document\n2 rows stored/);
  assert.deepEqual(plainRows(db, "c").map(({ s }) => s).sort(), ['a]},["', "b"]);
  assert.match(timepail(["import", db, "d", file("open.json", '[{"t":"2025-01-01"}')]).err, /Line 1: the array has no end/);
});

test("with --dedupe an import can be repeated", () => {
  const db = fresh();
  const input = file("again.csv", STATIONS);
  for (let i = 0; i < 2; i++) assert.equal(timepail(["import", db, "c", input, "--dedupe", "--dedupe-by", "wind"]).code, 0);
  assert.equal(rows(db, "c").length, 4);
  assert.match(timepail(["import", db, "c", input, "--dedupe-by", "station"]).err, /c exists, and its dedupe is wind, not station/);
});

test("text in another encoding is refused, unless the encoding is named", () => {
  const db = fresh();
  const input = file("latin.csv", Buffer.from("at,name\n2025-01-01,Köln\n", "latin1"));
  const { code, err } = timepail(["import", db, "c", input]);
  assert.deepEqual([code, err], [1, "timepail: latin.csv is not text in the encoding utf-8; --encoding says which it is, such as windows-1252\n"]);
  assert.equal(timepail(["import", db, "c", input, "--encoding", "windows-1252"]).code, 0);
  assert.equal(timepail(["import", db, "d", file("utf16.csv", Buffer.from("\ufeffat,name\n2025-01-01,Köln\n", "utf16le"))]).code, 0);
  assert.deepEqual([...rows(db, "c"), ...rows(db, "d")].map(({ name }) => name), ["Köln", "Köln"]);
});

test("another database of the file takes an import, too", () => {
  const db = fresh();
  assert.equal(timepail(["import", db, "c", file("other.csv", STATIONS), "--database", "other"]).code, 0);
  assert.equal(timepail(["stats", db]).out, "There are no collections.\n\nOther databases of the file, for --database: other\n");
  assert.match(timepail(["import", db, "c", "other.csv", "--database", "other"]).out, /Into the collection c, which exists/);
});

test("SIGINT and SIGTERM stop after what is stored, say so, and what was said is in the file", async () => {
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    const db = fresh();
    const { child, said, ended } = piped(["import", db, "c", "-", "--progress"]);
    child.stdin!.write(`at,v\n${Array.from({ length: 12_000 }, (_, i) => `${1.7e9 + i},${i}\n`).join("")}`);
    await said(/^10,000 rows, /m);
    child.kill(signal);
    const { code: got, err } = await ended;
    assert.equal(got, code, err);
    assert.match(err, /\nStopped: 10,000 rows stored in c in /);
    assert.equal(rows(db, "c").length, 10_000);
  }
});

test("calls that are not understood are refused with exit code 2, and failures with 1", () => {
  const db = fresh();
  const input = file("fine.csv", STATIONS);
  const cases: [string[], number, RegExp][] = [
    [[], 2, /Missing argument: file/],
    [[db], 2, /Missing argument: input/],
    [[db, "c", input, "--granularity", "days"], 2, /--granularity is one of seconds, minutes, hours, not days/],
    [[db, "c", input, "--types", "wind=float"], 2, /--types wind is one of number, int, /],
    [[db, "c", input, "--types", "gusts=number"], 2, /There is no field gusts among time, station, /],
    [[db, "c", input, "--timezone", "Mars"], 2, /--timezone: unknown value Mars/],
    [[db, "c", input, "--expire-after", "soon"], 2, /--expire-after is a time such as 30d/],
    [[db, "c", input, "--meta-field", "gusts"], 2, /There is no field gusts for the metadata/],
    [[db, "c", input, "--format", "xls"], 2, /--format is one of csv, ndjson, bson/],
    [[db, "c", input, "--nonsense"], 2, /nonsense/],
    [[db, "c", input, "--rename", "wind=Temp °C"], 2, /two fields would be called Temp °C/],
    [[db, "c", "missing.csv"], 1, /There is no file missing\.csv/],
    [[db, "c", file("empty.csv", "")], 1, /empty\.csv is empty/],
    [[db, "c", file("zero.csv", "a\0b\n1")], 1, /zero\.csv is not text/],
    [[db, "c", file("cut.csv.gz", gzipSync(STATIONS).subarray(0, 40))], 1, /cut\.csv\.gz cannot be decompressed: unexpected end of file/],
    [[db, "c", file("names.csv", "at,b\n")], 1, /names\.csv has no rows/],
    [[db, "c", file("timeless.csv", "a,b\n1,2\n")], 2, /No field of a, b is recognised as a time/],
    [[db, "c", file("doubtful.csv", "at,b\n3/4/2025,2\n")], 2, /--date-order determine how it is read/],
  ];
  for (const [args, code, reason] of cases) {
    const ended = timepail(["import", ...args]);
    assert.equal(ended.code, code, `${args.join(" ")}: ${ended.err}`);
    assert.match(ended.err, reason);
  }
});

test("the help has examples, and the list of commands names it", () => {
  const { code, out } = timepail(["import", "--help"]);
  assert.equal(code, 0);
  assert.match(out, /^Usage: timepail import <file> \[collection\] <input…> \[options\]\n/);
  assert.match(out, /\n {2}timepail import plant\.db dump\/plant\n/);
  assert.match(timepail(["--help"]).out, / timepail import <file> /);
});

test("random cells with quotes, newlines, separators and any letters come in as they were", () => {
  let seed = 20_250_301;
  const random = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % n;
  };
  const letters = ['"', '""', ",", ";", "\t", "\n", "\r\n", " ", "a", "0", "ü", "漢", "😀", "é", "\\", "'", "|", "null", "-"];
  const cell = (): string => Array.from({ length: random(6) }, () => letters[random(letters.length)]!).join("");
  for (const [delimiter, newline] of [[",", "\n"], [";", "\n"], ["\t", "\n"]] as const) {
    const db = fresh();
    const wanted = Array.from({ length: 3000 }, (_, n) => ({ n, a: cell(), b: cell(), c: cell() }));
    const quoted = (text: string): string => (/["\n\r]/.test(text) || text.includes(delimiter) || random(5) === 0 ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = wanted.map(({ n, a, b, c }) => [1.7e9 + n, n, quoted(a), quoted(b), quoted(c)].join(delimiter));
    const { code, err } = timepail(["import", db, "c", file("random.csv", ["at", "n", "a", "b", "c"].join(delimiter) + newline + lines.join(newline)), "--types", "a=string,b=string,c=string", "--delimiter", delimiter === "\t" ? "tab" : delimiter]);
    assert.equal(code, 0, err);
    assert.match(err, /^3,000 rows stored/);
    const found = plainRows(db, "c").map(({ n, a = "", b = "", c = "" }) => ({ n, a, b, c })).sort((x, y) => x.n - y.n);
    assert.deepEqual(found, wanted);
  }
});

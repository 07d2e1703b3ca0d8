// Times, values and records, as `timepail import` reads them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Decimal128, Int32, Long } from "bson";
import { DelimitedReader, delimiterOf, type Records } from "../../src/cli/import/delimited.js";
import { conflict, shaped } from "../../src/cli/import/shape.js";
import { Zone, orderOf, timeOfNumber, timeOfText, unitOf, type TimeRules } from "../../src/cli/import/times.js";
import { Misfit, fromText, fromValue, type FieldType } from "../../src/cli/import/values.js";

const iso = (ms: number): string | null => (Number.isNaN(ms) ? null : new Date(ms).toISOString());

test("times are read in common forms, and nothing else is a time", () => {
  const cases: [string, string | null, TimeRules?][] = [
    ["2025-03-01", "2025-03-01T00:00:00.000Z"],
    ["2025-03-01 12:30", "2025-03-01T12:30:00.000Z"],
    ["2025-03-01T12:30:15Z", "2025-03-01T12:30:15.000Z"],
    ["2025-03-01T12:30:15.123456789Z", "2025-03-01T12:30:15.123Z"],
    ["2025-03-01 12:30:15,5", "2025-03-01T12:30:15.500Z"],
    ["2025-03-01T12:30:15.5+02:00", "2025-03-01T10:30:15.500Z"],
    ["2025-03-01 12:30:15 -0530", "2025-03-01T18:00:15.000Z"],
    ["2025-03-01 12:30:15+01", "2025-03-01T11:30:15.000Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
    ["2025-02-29T00:00:00Z", null],
    ["2025-02-29", null],
    ["2025-13-01", null],
    ["2025-03-01T25:00:00Z", null],
    ["2025-03-01T24:00:00Z", "2025-03-02T00:00:00.000Z"],
    ["2025-03-01T12:60:00Z", null],
    ["2025-03-01T12:30:1xZ", null],
    ["31.12.2024 23:59:58", "2024-12-31T23:59:58.000Z"],
    ["31.13.2024", null],
    ["2024/12/31 01:02", "2024-12-31T01:02:00.000Z"],
    ["12/31/2024", null],
    ["12/31/2024 12:05 AM", "2024-12-31T00:05:00.000Z", { order: "mdy" }],
    ["3/4/2025", "2025-04-03T00:00:00.000Z", { order: "dmy" }],
    ["3/4/2025", "2025-03-04T00:00:00.000Z", { order: "mdy" }],
    ["Jan 1 2000", "2000-01-01T00:00:00.000Z"],
    ["Sat, 01 Mar 2025 12:00:00 +0100", "2025-03-01T11:00:00.000Z"],
    ["1735689600", null],
    ["1735689600", "2025-01-01T00:00:00.000Z", { unit: "s" }],
    ["0044-03-15", "0044-03-15T00:00:00.000Z"],
    ["web-7", null],
    ["Room 12", null],
    ["3-12", null],
    ["soon", null],
    ["", null],
  ];
  assert.deepEqual(cases.map(([text, , rules]) => [text, iso(timeOfText(text, rules))]), cases.map(([text, wanted]) => [text, wanted]));
});

test("the unit of numbers and the order of dates are taken only where nothing contradicts", () => {
  assert.deepEqual([[1735689600], [1735689600000], [1735689600000000], [1735689600000000000], [12], [1735689600, 1735689600000], []].map(unitOf), ["s", "ms", "us", "ns", undefined, undefined, undefined]);
  assert.deepEqual([["s", 1735689600.5], ["us", 1735689600000999], ["ns", 1735689600000000000]].map(([unit, value]) => timeOfNumber(value as number, unit as "s")), [1735689600500, 1735689600000, 1735689600000]);
  // A double does not hold nanoseconds exactly: these were a millisecond too early.
  const nanoseconds = ["1700000000001000000", "1700000000129000000.5", "1699999999999999999", "-1", "+5"];
  assert.deepEqual(nanoseconds.map((text) => timeOfText(text, { unit: "ns" })), [1700000000001, 1700000000129, 1699999999999, -1, 0]);
  assert.equal(timeOfNumber(1700000000001000000n, "ns"), 1700000000001);
  assert.deepEqual([["3/4/2025", "13/4/2025"], ["3/4/2025", "3/13/2025"], ["3/4/2025"], ["13/1/2025", "1/13/2025"]].map(orderOf), ["dmy", "mdy", undefined, undefined]);
});

test("times of a zone follow its summer time: the first of two, and the time not yet moved where there is none", () => {
  const zone = new Zone("Europe/Berlin");
  const cases: [string, string][] = [
    ["2025-01-15 12:00", "2025-01-15T11:00:00.000Z"],
    ["2025-07-15 12:00", "2025-07-15T10:00:00.000Z"],
    ["2025-03-30 01:59:59.999", "2025-03-30T00:59:59.999Z"],
    ["2025-03-30 02:30", "2025-03-30T01:30:00.000Z"],
    ["2025-03-30 03:00", "2025-03-30T01:00:00.000Z"],
    ["2025-10-26 01:59", "2025-10-25T23:59:00.000Z"],
    ["2025-10-26 02:30", "2025-10-26T00:30:00.000Z"],
    ["2025-10-26 03:00", "2025-10-26T02:00:00.000Z"],
    ["2025-07-15 12:00Z", "2025-07-15T12:00:00.000Z"],
  ];
  assert.deepEqual(cases.map(([text]) => [text, iso(timeOfText(text, { zone }))]), cases);
  // If the engine has the same offset for a time, the local time converts back to the same instant.
  for (const name of ["America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]) {
    const other = new Zone(name);
    const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: name, dateStyle: "short", timeStyle: "medium" });
    for (let day = 0; day < 800; day++) {
      const time = Date.UTC(2024, 0, 1, 12) + day * 86_400_000;
      assert.equal(other.utc(Date.parse(`${shown.format(time).replace(" ", "T")}Z`)), time, `${name}, ${iso(time)}`);
    }
  }
});

test("texts become values of their type, or do not fit", () => {
  const read = (type: FieldType, text: string, hasCommas = false): unknown => {
    try {
      return fromText(type, { hasCommas, times: {} })(text);
    } catch (error) {
      assert.ok(error instanceof Misfit);
      return error.message;
    }
  };
  assert.deepEqual(["1", "-1.5e3", " 7 ", "", "NA", "null", "NaN", "0x1f", "1,5", "x", "9007199254740993", "9007199254740992"].map((text) => read("number", text)), [1, -1500, 7, undefined, undefined, undefined, NaN, "“0x1f” is not a number", "“1,5” is not a number", "“x” is not a number", "“9007199254740993” has more digits than a number can hold; long and decimal can hold them", 9007199254740992]);
  assert.deepEqual(["1,5", "1.5", "1.234,5"].map((text) => read("number", text, true)), [1.5, 1.5, "“1.234,5” is not a number"]);
  assert.deepEqual(["7", "7.0", "-2147483648", "2147483648", "1.5"].map((text) => read("int", text)), [new Int32(7), new Int32(7), new Int32(-2147483648), "“2147483648” is not a whole number of 32 bits", "“1.5” is not a whole number of 32 bits"]);
  assert.deepEqual(["9223372036854775807", "+5", "9223372036854775808", "x"].map((text) => read("long", text)), [9223372036854775807n, 5n, "“9223372036854775808” is not a whole number of 64 bits", "“x” is not a whole number"]);
  assert.deepEqual(["true", "No", "1", "perhaps"].map((text) => read("bool", text)), [true, false, true, "“perhaps” is neither true nor false"]);
  assert.deepEqual([" a ", "", "NA", "007"].map((text) => read("string", text)), [" a ", undefined, "NA", "007"]);
  assert.deepEqual(["7", "007", "true", "a", "  "].map((text) => read("mixed", text)), [7, "007", true, "a", undefined]);
  assert.equal(String(read("decimal", "1.10")), "1.10");
  assert.equal(read("objectId", "12"), "“12” is not an ObjectId");
  assert.equal(read("object", "{"), "“{” is not JSON");
});

test("values of other types are converted where nothing is lost", () => {
  const date = new Date(0);
  const cases: [FieldType, unknown, unknown][] = [
    ["int", 7, new Int32(7)], ["int", Long.fromNumber(7), new Int32(7)], ["int", 7.5, Misfit], ["long", new Int32(7), 7n], ["long", 1e300, Misfit],
    ["number", 7n, 7], ["number", 9007199254740993n, Misfit], ["number", Decimal128.fromString("1.5"), 1.5], ["number", true, Misfit],
    ["string", 7, "7"], ["string", { a: 1 }, '{"a":1}'], ["string", date, "1970-01-01T00:00:00.000Z"], ["date", date, date], ["date", 1735689600n, new Date(1735689600000)], ["date", 12, Misfit],
    ["bool", 1, true], ["bool", 2, Misfit], ["number", null, null], ["number", undefined, undefined], ["skip", 7, undefined], ["mixed", date, date],
  ];
  for (const [type, value, wanted] of cases) {
    if (wanted === Misfit) assert.throws(() => fromValue(type)(value), Misfit, `${type} ${String(value)}`);
    else assert.deepEqual(fromValue(type)(value), wanted, `${type} ${String(value)}`);
  }
});

const join = (all: Records[]): Records => ({ cells: all.flatMap(({ cells }) => cells), lines: all.flatMap(({ lines }) => lines), bad: all.flatMap(({ bad }) => bad) });

test("text read in pieces equals text read at once, wherever it is split", () => {
  const text = 'a,b\r\n1,"x ""y"",\r\nz"\r\n\r\n2,\r\n3,"w"v\r\n4,5"\r\n"6" ,7\r\n';
  const read = (pieces: string[]): Records => {
    const reader = new DelimitedReader(",", text);
    return join([...pieces.map((piece) => reader.push(piece)), reader.end()]);
  };
  const whole = read([text]);
  assert.deepEqual(whole, {
    cells: [["a", "b"], ["1", 'x "y",\r\nz'], ["2", ""], ["4", '5"'], ["6", "7"]],
    lines: [1, 2, 5, 7, 8],
    bad: [{ line: 6, message: "a quote is in the wrong place" }],
  });
  for (let cut = 0; cut <= text.length; cut++) assert.deepEqual(read([text.slice(0, cut), text.slice(cut)]), whole, String(cut));
  assert.deepEqual(read([...text]), whole);
});

test("a quote that nobody closes costs its line, and no other", () => {
  const reader = new DelimitedReader(",", "a\n");
  const text = `a,b\n1,"open\n${"2,3\n".repeat(400_000)}`;
  const found = join([reader.push(text.slice(0, 700_000)), reader.push(text.slice(700_000)), reader.end()]);
  assert.deepEqual(found.bad, [{ line: 2, message: "a quote is not closed" }]);
  assert.equal(found.cells.length, 400_001);
  assert.deepEqual([found.lines[1], found.lines.at(-1)], [3, 400_002]);
});

test("the delimiter is the one of the first line", () => {
  assert.deepEqual(["a,b", "a;b;c,d", "a\tb", "a|b", "a", '"x,y,z";b'].map(delimiterOf), [",", ";", "\t", "|", ",", ";"]);
});

test("columns get their names, types and documents, and rows that do not fit go out of all of them", () => {
  const converters = new Map([["n", fromValue("int")], ["t", fromValue("date", { times: { unit: "s" } })]]);
  const shape = { names: new Map([["t", "at"], ["place", "station.place"]]), converters, isFlat: false };
  const columns = { t: Float64Array.of(1, 2, 3), "station.id": ["a", undefined, "c"], place: [undefined, undefined, "x"], n: [1, 1.5, 3n], big: BigInt64Array.of(1n, 2n, 3n) };
  const { columns: made, lines, bad } = shaped({ columns, rows: 3, lines: 11 }, shape);
  assert.deepEqual({ ...made }, { at: [new Date(1000), new Date(3000)], station: [{ id: "a" }, { id: "c", place: "x" }], n: [new Int32(1), new Int32(3)], big: BigInt64Array.of(1n, 3n) });
  assert.deepEqual([lines, bad], [[11, 13], [{ line: 12, message: "n: “1.5” is not a whole number of 32 bits" }]]);
  const flat = shaped({ columns: { "station.id": ["a"] }, rows: 1, lines: [4], bad: [{ line: 3, message: "no" }] }, { names: new Map(), converters: new Map(), isFlat: true });
  assert.deepEqual({ ...flat, columns: { ...flat.columns } }, { columns: { "station.id": ["a"] }, lines: [4], bad: [{ line: 3, message: "no" }] });
});

test("documents get the same, and keep their dots", () => {
  const shape = { names: new Map([["id", "station.id"], ["site", "station.site"]]), converters: new Map([["n", fromValue("int")]]), isFlat: false };
  const documents = [{ id: 1, site: "A", n: 1, "a.b": 2 }, { n: "x" }, { id: 2, n: null }];
  assert.deepEqual(shaped({ documents, lines: [1, 2, 5] }, shape), {
    documents: [{ station: { id: 1, site: "A" }, n: new Int32(1), "a.b": 2 }, { station: { id: 2 }, n: null }],
    lines: [1, 5],
    bad: [{ line: 2, message: "n: “x” is not a whole number of 32 bits" }],
  });
});

test("names that cannot be in one document are known", () => {
  assert.equal(conflict(["a", "b.c", "b.d"]), undefined);
  assert.equal(conflict(["a", "a"]), "two fields would be called a");
  assert.equal(conflict(["a.b", "a"]), "a cannot be a value and hold a.b");
  assert.equal(conflict(["a."]), "a. has a dot at an end, or two side by side");
});

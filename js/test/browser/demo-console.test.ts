// The demo page: the console.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLabelledAndFitting, click, complaints, count, idle, page, reachedByKeyboard, screenshot, shows } from "./demo-page.js";

/** Writes `text` into the box and presses a button. */
async function ask(text: string, button = "#console [type=submit]"): Promise<void> {
  await page.fill("#console-text", text);
  await click(button);
}

/** The value that the console parses from `text`, as JSON of types and values. */
function read(text: string): Promise<string> {
  return page.evaluate(async (text) => {
    const { Reader } = (await import(["", "literal.js"].join("/"))) as { Reader: new (text: string) => { value(): unknown; end(): void } };
    const reader = new Reader(text);
    const value = reader.value();
    reader.end();
    const plain = (value: unknown): unknown => {
      if (value instanceof Date) return { date: value.toISOString() };
      if (value instanceof RegExp) return { pattern: String(value) };
      if (Array.isArray(value)) return value.map(plain);
      if (typeof value !== "object" || value === null) return value;
      const { _bsontype: type } = value as { _bsontype?: string };
      if (type) return { [type]: String(value) };
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
    };
    return JSON.stringify(plain(value));
  }, text);
}

test("values are parsed as in JSON and as in JavaScript", async () => {
  const cases: [string, unknown][] = [
    ['{ "a": [1, -2.5, 1e3, 0x10, 1_000], "b": null }', { a: [1, -2.5, 1000, 16, 1000], b: null }],
    ["{ a: 'it\\'s', $gt: \"x\\u0041\\n\", `x`: 1, }", undefined],
    ["{ a: 'it\\'s', $gt: \"x\\u0041\\n\", 'b.c': `two\nlines`, }", { a: "it's", $gt: "xA\n", "b.c": "two\nlines" }],
    ['[new Date("2025-01-02"), ISODate("2025-01-02T03:04:05Z"), new Date(7 * 86_400_000 - (1 + 1) / 2)]', [{ date: "2025-01-02T00:00:00.000Z" }, { date: "2025-01-02T03:04:05.000Z" }, { date: "1970-01-07T23:59:59.999Z" }]],
    ["{ a: /^at[/]t\\/ic/i, // a remark\n /* another */ b: true }", { a: { pattern: "/^at[/]t\\/ic/i" }, b: true }],
    ['[ObjectId("65a000000000000000000001"), Long("9007199254740993"), NumberInt(5), Decimal128("1.10")]', [{ ObjectId: "65a000000000000000000001" }, { Long: "9007199254740993" }, { Int32: "5" }, { Decimal128: "1.10" }]],
    ['{ __proto__: 1, "constructor": 2 }', { ["__proto__"]: 1, constructor: 2 }],
  ];
  for (const [text, value] of cases) {
    if (value === undefined) await assert.rejects(read(text), /expected the name of a field/);
    else assert.equal(await read(text), JSON.stringify(value), text);
  }
});

test("invalid values are refused with their position, and nothing runs", async () => {
  const cases: [string, RegExp][] = [
    ["{ a: 1,\n  b: }", /line 2, column 6: expected a value and found “}”/],
    ["{ a: alert(1) }", /line 1, column 6: “alert” is not known here/],
    ["{ a: window.x }", /“window” is not known/],
    ["{ a: 'x }", /line 1, column 6: a string has no end/],
    ["[1, 2", /expected “]” and the text ends/],
    ['new Date("soon")', /there is no date "soon"/],
    ['"a" + 1', /only numbers can be calculated with/],
    ["{ a: 1 } b", /expected the end and found “b”/],
    ["/(/", /[Ii]nvalid regular expression/],
  ];
  for (const [text, message] of cases) await assert.rejects(read(text), message, text);
});

test("a find is shown as a table, and as documents", async () => {
  await click("[data-load=weather]");
  await ask('db.collection("weather").find({ temperature: { $gt: 23 } }).sort({ at: -1 }).limit(3)');
  assert.match(await shows("#console-result"), /^3 rows in [\d.]+ ms$/);
  assert.deepEqual(await page.locator("#console-output thead th").allTextContents(), ["at", "station", "temperature", "wind", "pressure"]);
  assert.equal(await page.locator("#console-output tbody tr").count(), 3);
  assert.match(await shows("#console-output tbody tr"), /^2010-08-\d\d \d\d:00Seattle2[34]/);
  await page.click("[name=console-form][value=documents]");
  assert.match(await shows("#console-output pre"), /^\{ at: new Date\("2010-08-/);
  await screenshot("console-documents", ".console");
  await page.click("[name=console-form][value=table]");
  await screenshot("console-table", ".console");
});

test("at most 500 rows are read, and the page says that there are more", async () => {
  await ask('db.collection("weather").find()');
  assert.equal(await shows("#console-note"), "the first 500; there are more");
  assert.equal(await page.locator("#console-output tbody tr").count(), 500);
});

test("every kind of call gives the same result as in code", async () => {
  const cases: [string, RegExp][] = [
    ['db.collection("weather").countDocuments({ at: { $lt: ISODate("2010-02-01") } })', /^743$/],
    ['await db.collection("weather").distinct("station");', /^"Seattle"$/],
    ["{ ping: 1 }", /^\{ ok: 1 \}$/],
    ['const { at } = await db.collection("weather").find({ wind: { $lt: 0 } }).toColumns()', /^\{ at: \[\] \}$/],
    ['db.collection("weather").findOne({ wind: { $exists: false } })', /^null$/],
  ];
  for (const [text, shown] of cases) {
    await ask(text);
    assert.equal(await shows("#console-error"), "", text);
    assert.match(await shows("#console-output"), shown, text);
  }
});

test("an error is shown beside the box, with its place or its code", async () => {
  const cases: [string, RegExp][] = [
    ['db.collection("weather").eval("1")', /^line 1, column 26: there is no “eval” here; there is find, aggregate, /],
    ['db.constructor("x")', /there is no “constructor” here/],
    ["fetch('x')", /begin with db/],
    ['db.collection("weather")', /say what to do/],
    ['db.collection("weather").find({ a: { $nonsense: 1 } })', /^BadValue \(code 2\): /],
    ["{ nonsense: 1 }", /^CommandNotFound \(code 59\): /],
  ];
  for (const [text, message] of cases) {
    await ask(text);
    assert.match(await shows("#console-error"), message);
    assert.equal(await shows("#console-output"), "");
  }
});

test("Explain shows the steps of a query", async () => {
  await ask('db.collection("weather").find({ station: "Seattle", at: { $gte: ISODate("2010-12-01") }, wind: { $gt: 3 } }).limit(5)', "#explain");
  const figures = await page.locator("#console-output .plan-figures dt").allTextContents();
  assert.deepEqual(figures, ["Index entries", "Buckets read", "Buckets unpacked", "Measurements examined", "Returned"]);
  const values = (await page.locator("#console-output .plan-figures dd").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  assert.ok(values[1]! > 0 && values[1]! < 5, `of 13 buckets few are read: ${values}`);
  assert.ok(values[3]! >= values[4]! && values[4] === 5, String(values));
  const steps = await page.locator("#console-output .plan li b").allTextContents();
  assert.deepEqual(steps.slice(0, 3), ["Scan an index", "Read the buckets that it names", "Unpack"]);
  assert.match(await shows(".plan li:first-child"), /index station_1_at_1/);
  await screenshot("console-plan", ".console");
  await page.click("#console-output summary");
  assert.match(await shows("#console-output details pre"), /executionStats:/);

  for (const text of ['db.collection("weather").countDocuments({ wind: 3 })', 'db.collection("weather").deleteMany({ wind: 3 })', 'db.collection("weather").aggregate([{ $sortByCount: "$station" }])', '{ distinct: "weather", key: "wind" }']) {
    await ask(text, "#explain");
    assert.equal(await shows("#console-error"), "", text);
    assert.ok((await page.locator("#console-output .plan li").count()) > 0, text);
  }
  assert.equal(await count("#measurements"), 8759, "explaining a deletion deletes nothing");
  await ask("{ ping: 1 }", "#explain");
  assert.notEqual(await shows("#console-error"), "");
});

test("every example runs and can be explained", async () => {
  const examples = await page.locator("#examples button").count();
  assert.ok(examples >= 4);
  for (let i = 0; i < examples; i++) {
    await click(`#examples button:nth-child(${i + 1})`);
    assert.equal(await shows("#console-error"), "");
    assert.notEqual(await shows("#console-output"), "");
  }
  for (let i = 0; i < examples - 1; i++) {
    await click(`#examples button:nth-child(${i + 1})`);
    await click("#explain");
    assert.ok((await page.locator("#console-output .plan li").count()) > 0);
  }
});

test("the query of the chart can be tried in the console, however it is drawn", async () => {
  for (const mode of ["points", "line", "means"]) {
    await click(`[name=mode][value=${mode}]`);
    await click("#to-console");
    await click("#console [type=submit]");
    assert.equal(await shows("#console-error"), "", mode);
    assert.match(await shows("#console-output"), /^\{.*\bat: \[126\d{10}, /s, mode);
  }
});

test("writes in the console show on the page", async () => {
  await ask('db.collection("weather").insertOne({ at: ISODate("2011-01-01T12:00:00Z"), station: "Seattle", temperature: 5 })');
  assert.equal(await count("#measurements"), 8760);
  await ask('db.createCollection("mine", { timeseries: { timeField: "t" } })');
  await ask('db.collection("mine").insertMany([{ t: ISODate("2025-05-05T05:05:05Z"), x: 1 }, { t: ISODate("2025-05-05T05:06:05Z"), x: 2 }])');
  await click("[name=collection][value=mine]");
  assert.equal(await count("#measurements"), 2);
  assert.match(await shows("#charts"), /x/);
  await ask('db.dropCollection("mine")');
  assert.equal(await page.locator("[name=collection][value=mine]").count(), 0);
  assert.equal(await page.isChecked("[name=collection][value=weather]"), true);
});

test("the keyboard runs and reaches everything, and nothing overflows", async () => {
  const reached = await reachedByKeyboard();
  for (const control of ["console-text", "console submit", "explain", "console-form", "mode", "to-console"]) assert.ok(reached.has(control), control);
  await page.fill("#console-text", 'db.collection("weather").find({}, { limit: 1 })');
  await page.keyboard.press("Control+Enter");
  await idle();
  assert.match(await shows("#console-result"), /^1 row in/);
  await ask('db.collection("weather").find().limit(50)');
  await assertLabelledAndFitting();
  assert.deepEqual(complaints, []);
});

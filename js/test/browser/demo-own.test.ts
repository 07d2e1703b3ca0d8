// The demo page: files of the user.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLabelledAndFitting, cancelPast, click, complaints, count, idle, page, paintedPixels, reachedByKeyboard, screenshot, shows, showsSoon } from "./demo-page.js";

const STATIONS = `time,station,Temp °C,wind,"remark, if any"
2025-03-01 00:00,roof,4.5,3,
2025-03-01 00:00,yard,5.25,1,"said ""calm"",
then left"
2025-03-01 01:00,roof,4,,foggy
2025-03-01 01:00,yard,5,1.5,
`;

async function choose(name: string, text: string): Promise<void> {
  await page.setInputFiles("#file", { name, mimeType: "text/plain", buffer: Buffer.from(text) });
  await idle();
}

/** Runs `work` with the modules of the page. */
function inPage<T>(path: string, work: string): Promise<T> {
  return page.evaluate(async ([path, work]) => (new Function("module", `return (${work})(module)`) as (module: unknown) => T)(await import(path!)), [path, work] as const);
}

test("a file read in pieces equals one read at once, wherever it is split", async () => {
  const [whole, same] = await inPage<[unknown, boolean]>(
    "/delimited.js",
    `({ DelimitedReader }) => {
      const text = ${JSON.stringify(STATIONS)}.replaceAll("\\n", "\\r\\n");
      const read = (pieces) => {
        const reader = new DelimitedReader(",");
        return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()];
      };
      const whole = read([text]);
      const cuts = [...text].map((_, i) => read([text.slice(0, i), text.slice(i)]));
      return [whole, cuts.every((cut) => JSON.stringify(cut) === JSON.stringify(whole)) && JSON.stringify(read([...text])) === JSON.stringify(whole)];
    }`,
  );
  assert.deepEqual(whole, [
    { line: 1, cells: ["time", "station", "Temp °C", "wind", "remark, if any"] },
    { line: 2, cells: ["2025-03-01 00:00", "roof", "4.5", "3", ""] },
    { line: 3, cells: ["2025-03-01 00:00", "yard", "5.25", "1", 'said "calm",\r\nthen left'] },
    { line: 5, cells: ["2025-03-01 01:00", "roof", "4", "", "foggy"] },
    { line: 6, cells: ["2025-03-01 01:00", "yard", "5", "1.5", ""] },
  ]);
  assert.ok(same);
});

test("times are parsed in common forms, and nothing else is a time", async () => {
  const cases: [unknown, string | null][] = [
    ["2025-03-01", "2025-03-01T00:00:00.000Z"],
    ["2025-03-01 12:30", "2025-03-01T12:30:00.000Z"],
    ["2025-03-01T12:30:15.5+02:00", "2025-03-01T10:30:15.500Z"],
    ["31.12.2024 23:59:58", "2024-12-31T23:59:58.000Z"],
    ["Jan 1 2000", "2000-01-01T00:00:00.000Z"],
    ["12/31/2024", "2024-12-31T00:00:00.000Z"],
    [1735689600, "2025-01-01T00:00:00.000Z"],
    ["1735689600000", "2025-01-01T00:00:00.000Z"],
    ["Sat, 01 Mar 2025 12:00:00 +0100", "2025-03-01T11:00:00.000Z"],
    ["2024/12/31 01:02", "2024-12-31T01:02:00.000Z"],
    ["31.13.2024", null],
    ["web-7", null],
    ["Room 12", null],
    ["3-12", null],
    ["soon", null],
    ["", null],
    [12, null],
    [null, null],
  ];
  const read = await inPage<(string | null)[]>("/guess.js", `({ timeOf }) => ${JSON.stringify(cases)}.map(([value]) => timeOf(value)).map((ms) => Number.isNaN(ms) ? null : new Date(ms).toISOString())`);
  assert.deepEqual(read, cases.map(([, wanted]) => wanted));
});

test("a CSV file is previewed, and the guesses can be changed", async () => {
  await choose("My stations.csv", STATIONS);
  assert.match(await shows("#own-about"), /^\d+ B, CSV, separated by commas, 5 columns$/);
  assert.equal(await page.inputValue("#own-name"), "my_stations");
  assert.equal(await page.inputValue("#own-time"), "time");
  assert.equal(await page.inputValue("#own-meta"), "station");
  const heads = await page.locator("#own-preview th").allTextContents();
  assert.deepEqual(heads, ["timetime", "stationtext", "Temp °Cnumber", "windnumber", "remark, if anytext"]);
  assert.equal(await page.locator("#own-preview tbody tr").count(), 4);
  await screenshot("own-preview", ".fill");
  await click("#own-discard");
  assert.equal(await page.isVisible("#own"), false);
  assert.equal(await page.locator("[name=collection]").count(), 3, "nothing was made");
});

test("it becomes a collection with a tab, series and a chart for each number", async () => {
  await choose("stations.csv", STATIONS);
  await click("#own-form [type=submit]");
  assert.equal(await page.isChecked("[name=collection][value=stations]"), true);
  assert.equal(await count("#measurements"), 4);
  assert.deepEqual(await page.locator("#series label").allTextContents(), ["roof", "yard"]);
  assert.deepEqual(await page.locator("#charts figcaption b").allTextContents(), ["Temp °C", "wind"]);
  assert.ok((await paintedPixels()).every((painted) => painted > 500));
  await page.fill("#console-text", 'db.collection("stations").find({ station: "yard" }).sort({ time: 1 }).limit(1)');
  await page.check("[name=console-form][value=documents]");
  await click("#console [type=submit]");
  assert.match(await shows("#console-output"), /time: new Date\("2025-03-01"\).*"Temp °C": 5\.25,\s+wind: 1,\s+"remark, if any": "said \\"calm\\",\\nthen left"/s);
  await click("[name=mode][value=means]");
  assert.match(await shows("#result"), /^4 rows/);
  await click("[name=mode][value=line]");
  assert.match(await shows("#result"), /^7 rows/, "one row has no wind");
  await click("[name=mode][value=points]");
  await screenshot("own-collection");
});

test("the same file read again adds nothing, and a longer one adds what is new", async () => {
  await choose("stations.csv", STATIONS);
  assert.equal(await page.inputValue("#own-name"), "stations", "an import of these columns");
  await click("#own-form [type=submit]");
  assert.match(await shows("#toast p"), /^4 rows inserted in .*, 4 of them known already\.$/);
  assert.equal(await count("#measurements"), 4);
  await choose("stations.csv", `${STATIONS}2025-03-01 02:00,roof,3.5,4,late\n`);
  await click("#own-form [type=submit]");
  assert.match(await shows("#toast p"), /^5 rows inserted in .*, 4 of them known already\.$/);
  assert.equal(await count("#measurements"), 5);
});

test("lines of JSON keep their types, with dates as text or as extended JSON and fields that come late", async () => {
  const lines = [
    { t: { $date: "2025-03-01T00:00:00Z" }, engine: { id: 7 }, rpm: 900, tags: ["a"] },
    { t: { $date: "2025-03-01T00:00:01Z" }, engine: { id: 7 }, rpm: 950 },
    { t: "2025-03-01T00:00:02Z", engine: { id: 8 }, rpm: 990, late: true },
  ];
  await choose("engines.ndjson", lines.map((line) => JSON.stringify(line)).join("\n"));
  assert.match(await shows("#own-about"), /NDJSON, 5 columns/);
  await page.selectOption("#own-meta", "engine");
  await click("#own-form [type=submit]");
  assert.equal(await count("#measurements"), 3);
  assert.deepEqual(await page.locator("#series label").allTextContents(), ["{id:7}", "{id:8}"]);
  await click("[name=series][value='{id:8}']");
  assert.match(await shows("#result"), /^2 rows/);
  assert.match(await shows("#query-code"), /engine: \{ id: 7 \}/);
  assert.ok((await paintedPixels()).every((painted) => painted > 300));
});

test("unreadable lines are reported, and the rest is stored", async () => {
  const rows = ["when;value", "2025-03-01;1,5", "never;2", "2025-03-02;3;4", '2025-03-03;"x"y', "2025-03-04;4"];
  await choose("few.csv", rows.join("\n"));
  assert.match(await shows("#own-about"), /separated by semicolons/);
  await page.selectOption("#own-time", "when");
  await click("#own-form [type=submit]");
  assert.deepEqual(await page.locator("#own-problems li").allTextContents(), [
    "Line 3: no time in “never”",
    "Line 4: has 3 cells instead of 2",
    "Line 5: a quote is in the wrong place",
  ]);
  assert.match(await shows("#toast p"), /^2 rows inserted in .*, 3 refused\.$/);
  assert.equal(await page.isVisible("#own-form [type=submit]"), false, "it is done");
  assert.equal(await count("#measurements"), 2);
  await click("#own-discard");

  await choose("bad.ndjson", '{"t":"2025-03-01","v":1}\n{"t":\n[1]\n{"v":2}\n');
  await click("#own-form [type=submit]");
  assert.deepEqual((await page.locator("#own-problems li").allTextContents()).map((text) => text.replace(/JSON.*|Unexpected.*/, "…")), ["Line 2: …", "Line 3: is not a document", "Line 4: no time in “”"]);
  await click("#own-discard");
});

test("an invalid file or a name in use is refused with a reason", async () => {
  for (const [text, reason] of [["", /is empty/], ["[{}]", /NDJSON/], ["a,b\n", /has no records/], ["\0\x01", /is not text/]] as const) {
    await choose("x.csv", text);
    assert.match(await shows("#toast p"), reason);
    await page.click("#toast button");
  }
  await choose("y.csv", STATIONS.replace("wind", "gusts"));
  await page.fill("#own-name", "stations");
  await click("#own-form [type=submit]");
  assert.match(await shows("#toast p"), /There is a collection “stations” already/);
  await page.click("#toast button");
  await click("#own-discard");
  complaints.length = 0; // The errors are in the console as well.
});

test("ten megabytes come in pieces: the bar moves, the page draws, and Cancel keeps what was stored", { timeout: 120_000 }, async () => {
  const rows = ["at,device,load,memory"];
  for (let i = 0; rows.length < 270_000; i++) rows.push(`${new Date(1.7e12 + i * 1000).toISOString()},web-${i % 4},${(50 + 40 * Math.sin(i / 9000)).toFixed(3)},${i % 1000}`);
  const text = rows.join("\n");
  assert.ok(text.length > 10e6, String(text.length));
  await choose("servers.csv", text);
  await page.evaluate(() => {
    const bar = document.querySelector("progress")!;
    const seen = { values: new Set<number>(), frames: 0 };
    Object.assign(globalThis, { seen });
    new MutationObserver(() => seen.values.add(bar.value)).observe(bar, { attributes: true });
    const frame = (): void => {
      if ("busy" in document.body.dataset) seen.frames++;
      requestAnimationFrame(frame);
    };
    frame();
  });
  await click("#own-form [type=submit]");
  assert.equal(await count("#measurements"), 269_999);
  const [values, frames] = await page.evaluate(() => {
    const { seen } = globalThis as unknown as { seen: { values: Set<number>; frames: number } };
    return [seen.values.size, seen.frames];
  });
  assert.ok(values > 10 && frames > 10, `${values} values, ${frames} frames`);
  assert.deepEqual(await page.locator("#charts figcaption b").allTextContents(), ["load", "memory"]);

  await choose("again.csv", text);
  await page.click("#own-form [type=submit]");
  await cancelPast(0.05);
  const kept = await count("#measurements");
  assert.ok(kept > 0 && kept < 269_999, String(kept));
  assert.match(await shows("#toast p"), /^Cancelled: /);
});

test("a file can be dropped on the page, and the user's collection can be deleted", async () => {
  const transfer = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "dropped.tsv"));
    return transfer;
  }, STATIONS.replaceAll(",", "\t"));
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  assert.equal(await page.evaluate(() => "dropping" in document.body.dataset), true);
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await showsSoon("#own-about", /separated by tabs/);
  await idle();
  await click("#own-form [type=submit]");
  assert.equal(await page.isChecked("[name=collection][value=dropped]"), true);
  await page.reload();
  await idle();
  assert.equal(await page.isChecked("[name=collection][value=dropped]"), true, "it is there after a reload");
  assert.match(await shows("#drop-one"), /^Drop “dropped”$/);
  await page.click("#drop-one");
  await page.keyboard.press("Escape");
  await idle();
  assert.equal(await page.locator("[name=collection][value=dropped]").count(), 1);
  await page.click("#drop-one");
  await click("#drop-yes");
  assert.equal(await page.locator("[name=collection][value=dropped]").count(), 0);
  assert.equal(await page.isVisible("#drop-one"), false, "a collection of the page cannot be dropped alone");
});

test("the keyboard reaches everything, fields have labels, and nothing overflows", async () => {
  assert.ok((await reachedByKeyboard()).has("file"));
  await choose("z.csv", STATIONS);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "own-name");
  await assertLabelledAndFitting();
  assert.deepEqual(complaints, []);
});

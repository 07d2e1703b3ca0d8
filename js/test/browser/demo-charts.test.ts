// The demo page: charts and their settings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLabelledAndFitting, click, complaints, count, page, paintedPixels, screenshot, shows } from "./demo-page.js";

declare const timepail: typeof import("../../src/index.js");

/** Runs the code that the page shows; resolves to the number of rows and the names of the columns. */
function runShownCode(code: string): Promise<[number, string[]]> {
  return page.evaluate(async (source) => {
    const { open } = (await import("timepail")) as typeof timepail;
    const db = await open("demo");
    const run = new Function("db", `return (async () => { ${source}; return [columns.at.length, Object.keys(columns).sort()]; })()`);
    const answer = (await run(db)) as [number, string[]];
    await db.close();
    return answer;
  }, code);
}

test("means of a year are per day, with a band from minimum to maximum", async () => {
  await click("[data-load=weather]");
  const plain = await paintedPixels();
  await click("[name=mode][value=means]");
  assert.match(await shows("#result"), /^365 rows in /);
  assert.match(await shows("#result-note"), /; mean, minimum and maximum by day$/);
  const banded = await paintedPixels();
  assert.equal(banded.length, 3);
  assert.ok(banded.every((painted) => painted > 2000), `${plain} ${banded}`);
  const code = await shows("#query-code");
  assert.ok(code.includes('bin: { $dateTrunc: { date: "$at", unit: "day" } }'), code);
  const names = ["temperature", "wind", "pressure"].flatMap((field) => [field, `least_${field}`, `greatest_${field}`]);
  assert.deepEqual(await runShownCode(code), [365, ["at", "station", ...names].sort()]);
  assert.equal(await page.locator("#charts figure:first-child .u-series:visible").count(), 2, "the legend has the time and the mean only");
  await screenshot("means", ".query");
});

test("a shorter range has shorter bins, and the choice is kept when the collection changes", async () => {
  await click("[data-days='7']");
  assert.match(await shows("#result-note"), /by hour$/);
  assert.match(await shows("#result"), /^168 rows/);
  await click("[data-days='1']");
  assert.match(await shows("#result-note"), /by 10 minutes$/);
  await click("[data-load=stocks]");
  assert.match(await shows("#result-note"), /by month$/);
  assert.equal(await page.isChecked("[name=mode][value=means]"), true);
});

test("downsampling keeps few rows if there are few", async () => {
  await click("[name=mode][value=line]");
  assert.match(await shows("#result"), /^560 rows/);
  assert.equal((await runShownCode(await shows("#query-code")))[0], 560);
});

test("a line keeps the colour of its series, whichever others are chosen", async () => {
  for (const name of ["AAPL", "AMZN", "GOOG", "IBM"]) await click(`[name=series][value=${name}]`);
  const [box, marker, swatch] = await page.evaluate(() => {
    const label = document.querySelector<HTMLElement>("label:has([value=MSFT])")!;
    const marker = document.querySelector<HTMLElement>("#charts .u-series:nth-child(2) .u-marker")!;
    const probe = Object.assign(document.createElement("i"), { style: "color: var(--series-5)" });
    document.body.append(probe);
    return [label.style.getPropertyValue("--swatch"), getComputedStyle(marker).borderBottomColor, getComputedStyle(probe).color];
  });
  assert.equal(box, "var(--series-5)");
  assert.equal(marker, swatch);
});

test("a million points are drawn, point by point, downsampled, and as means of all", { timeout: 300_000 }, async () => {
  await click('[data-add="1000000"]');
  assert.equal(await count("#measurements"), 1_000_000);
  await click("[name=mode][value=means]");
  await click("[data-days=all]");
  const bins = Math.ceil((200_000 * 10) / 3600);
  assert.match(await shows("#result"), new RegExp(`^${(5 * bins).toLocaleString("en")} rows`));
  assert.ok((await paintedPixels()).every((painted) => painted > 5000));
  await screenshot("million-means", ".query");
  await click("[name=mode][value=line]");
  assert.match(await shows("#result"), /^15,000 rows/, "1000 of each room for each field");
  assert.match(await shows("#result-note"), /; at most 1,000 of each line/);
  assert.ok((await paintedPixels()).every((painted) => painted > 5000));
  await screenshot("million-line", ".query");
  const code = await shows("#query-code");
  assert.match(code, /\$downsample: \{ field, points: 1000, sortBy: \{ at: 1 \}, partitionBy: "\$room" \}/);
  const [temperature] = await runShownCode(code.replace(/$/, "\ncolumns.at = columns[0].at;"));
  assert.equal(temperature, 5000);
  await click("[name=mode][value=points]");
  assert.match(await shows("#result"), /^1,000,000 rows/);
  assert.match(await shows("#result-note"), /one point in 10 is drawn/);
  assert.ok((await paintedPixels()).every((painted) => painted > 5000));
  await screenshot("million-points", ".query");
});

test("all controls are labelled and fit, and nothing failed", async () => {
  await assertLabelledAndFitting();
  assert.deepEqual(complaints, []);
});

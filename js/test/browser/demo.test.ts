// The demo page in Chromium, used like a visitor does: by mouse and keyboard, over reloads and restarts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLabelledAndFitting, browser, cancelPast, click, complaints, count, idle, page, paintedPixels, reachedByKeyboard, screenshot, shows, start } from "./demo-page.js";

declare const timepail: typeof import("../../src/index.js");

const WEATHER_ROWS = 8759;
const STOCK_ROWS = 560;

test("an empty page says what to do", async () => {
  assert.match(await shows("#empty"), /empty.*Load the weather/);
  assert.equal(await count("#measurements"), 0);
});

test("weather and stocks are loaded, counted, drawn and shown as buckets", async () => {
  await click("[data-load=weather]");
  assert.equal(await count("#measurements"), WEATHER_ROWS);
  assert.match(await shows("#result"), /^8,759 rows in [\d.,]+ m?s$/);
  const panels = await paintedPixels();
  assert.equal(panels.length, 3);
  assert.ok(panels.every((painted) => painted > 2000), String(panels));
  assert.equal(await page.locator("#bucket-list > li").count(), 5);
  assert.match(await shows("#bucket-list > li"), /Seattle719 measurements1 Jan 2010, 00:00to 30 Jan 2010, 23:00.*temperature3\.77\.9/s);
  await screenshot("weather");

  await click("[data-load=stocks]");
  assert.equal(await count("#measurements"), STOCK_ROWS);
  assert.equal((await paintedPixels()).length, 1);
  assert.ok((await count("#buckets")) > 40);
  await screenshot("stocks");

  await click("[data-load=stocks]");
  assert.equal(await count("#measurements"), STOCK_ROWS, "loading again replaces");
});

test("100 000 sensor points are added under a progress bar that moves", async () => {
  await page.evaluate(() => {
    const bar = document.querySelector("progress")!;
    const seen: number[] = ((globalThis as unknown as { seen: number[] }).seen = []);
    new MutationObserver(() => seen.push(bar.value)).observe(bar, { attributes: true });
  });
  await click('[data-add="100000"]');
  const seen = await page.evaluate(() => (globalThis as unknown as { seen: number[] }).seen);
  assert.ok(new Set(seen).size >= 5 && seen.at(-1) === 1, String(seen));
  assert.equal(await page.isVisible("#progress"), false);
  assert.equal(await count("#measurements"), 100_000);
  assert.match(await shows("#insert-rate"), /^[\d.]+ [kM]\/s$/);
  assert.ok(Number(await shows("#bytes-a-point")) > 0);
});

test("adding stops at a click on Cancel, and what was stored stays", async () => {
  await page.click('[data-add="1000000"]');
  await cancelPast(0);
  const measurements = await count("#measurements");
  assert.ok(measurements > 100_000 && measurements < 1_100_000, String(measurements));
});

test("a range query narrows by series and by dates, and shows the code that ran", async () => {
  await click("[data-days=all]");
  await page.fill("#from", "2025-01-02");
  await page.fill("#to", "2025-01-02");
  await click("#query button[type=submit]");
  assert.match(await shows("#result"), /^43,200 rows/);
  for (const room of ["attic", "cellar", "garage"]) await click(`[name=series][value=${room}]`);
  assert.match(await shows("#result"), /^17,280 rows/);
  const code = await shows("#query-code");
  assert.ok(code.includes('room: { $in: ["garden", "kitchen"] }, at: { $gte: new Date("2025-01-02"), $lt: new Date("2025-01-03") }'), code);
  await click("[name=series][value=garden]");
  assert.match(await shows("#result"), /^8,640 rows/);
  assert.ok((await paintedPixels()).every((painted) => painted > 1000));

  // The shown code gives the same rows when run.
  const rows = await page.evaluate(async (source) => {
    const { open } = (await import("timepail")) as typeof timepail;
    const db = await open("demo");
    const run = new Function("db", `return (async () => { ${source}; return columns.at.length; })()`) as (db: unknown) => Promise<number>;
    const rows = await run(db);
    await db.close();
    return rows;
  }, await shows("#query-code"));
  assert.equal(rows, 8640);
  await screenshot("sensors");
});

test("the example at the top runs as it stands", async () => {
  const rows = await page.evaluate(async (source) => {
    const { open } = (await import("timepail")) as typeof timepail;
    const run = new Function("open", `return (async () => { ${source}; await db.close(); return [at.length, temperature[0]]; })()`);
    return (run as (with_: unknown) => Promise<number[]>)(open);
  }, (await shows("#sample")).replace(/^import.*/, ""));
  assert.deepEqual(rows, [1, 21.5]);
});

test("more points than a chart can show are downsampled, and the page says so", async () => {
  await click('[data-add="100000"]');
  await click("[data-days=all]");
  assert.match(await shows("#result-note"), /one point in \d+ is drawn/);
});

test("everything is there after a reload, and after a restart of the browser", async () => {
  const measurements = await count("#measurements");
  await page.reload();
  await idle();
  assert.equal(await page.isChecked("[name=collection][value=sensors]"), true);
  assert.equal(await count("#measurements"), measurements);
  await browser.close();
  await start();
  assert.equal(await count("#measurements"), WEATHER_ROWS);
  await click("[name=collection][value=stocks]");
  assert.equal(await count("#measurements"), STOCK_ROWS);
  await click("[name=collection][value=sensors]");
  assert.equal(await count("#measurements"), measurements);
});

test("measurements older than a date are deleted", async () => {
  await click("[name=collection][value=weather]");
  await page.fill("#before", "2010-02-01");
  assert.match(await shows("#delete-code"), /deleteMany\(\{ at: \{ \$lt: new Date\("2010-02-01"\) \} \}\)/);
  await click("#retention button");
  const january = 31 * 24 - 1; // The series begins at one o'clock.
  assert.match(await shows("#deleted"), new RegExp(`^${january} measurements deleted in `));
  assert.equal(await count("#measurements"), WEATHER_ROWS - january);
  assert.equal(await page.inputValue("#from"), "2010-02-01");
});

test("every control can be reached and used by keyboard", async () => {
  const reached = await reachedByKeyboard();
  const filling = ["weather", "stocks", "100000", "1000000"];
  const querying = ["collection", "series", "from", "to", "1", "all", "query submit", "query-code"];
  for (const control of [...filling, ...querying, "before", "retention submit", "drop"])
    assert.ok(reached.has(control), `${control} is not among ${[...reached].join(", ")}`);

  await page.focus("[name=collection]:checked");
  await page.keyboard.press("ArrowRight");
  await idle();
  assert.equal(await count("#measurements"), STOCK_ROWS);
  await assertLabelledAndFitting();
});

test("every collection fits a phone", async () => {
  const width = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);
  await page.setViewportSize({ width: 375, height: 812 });
  for (const name of ["weather", "stocks", "sensors"]) {
    await click(`[name=collection][value=${name}]`);
    assert.equal(await width(), 375, name);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("nothing failed so far: no error, no warning, no request to elsewhere", () => {
  assert.deepEqual(complaints, []);
});

test("an error of the database is shown with its code", async () => {
  await page.evaluate(async () => {
    const { open } = (await import("timepail")) as typeof timepail;
    const db = await open("demo");
    await db.dropCollection("stocks");
    await db.close();
  });
  await click("[data-load=stocks]");
  assert.match(await shows("#toast p"), /^NamespaceNotFound \(code 26\): /);
  await page.click("#toast button");
  assert.equal(await page.isVisible("#toast"), false);
});

test("everything is dropped only after a confirmation", async () => {
  await click("[name=collection][value=weather]");
  await page.click("#drop");
  await page.keyboard.press("Enter"); // "Keep it" has the focus.
  await idle();
  assert.ok((await count("#measurements")) > 0);
  await page.click("#drop");
  await click("#drop-dialog .danger");
  assert.equal(await count("#measurements"), 0);
  for (const name of ["stocks", "sensors"]) {
    await click(`[name=collection][value=${name}]`);
    assert.match(await shows("#empty"), new RegExp(name));
  }
  await click("[data-load=stocks]");
  await page.click("#drop");
  await page.keyboard.press("Escape");
  await idle();
  assert.equal(await count("#measurements"), STOCK_ROWS);
});

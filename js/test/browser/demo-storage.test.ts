// The demo page: storage use and retention.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLabelledAndFitting, click, complaints, count, page, reachedByKeyboard, screenshot, shows } from "./demo-page.js";

/** The row of a collection in the table. */
async function row(name: string): Promise<string[]> {
  const line = page.locator("#storage-rows tr", { has: page.locator(`th:text-is("${name}")`) });
  return line.locator("td").allTextContents();
}

test("the meter shows the browser's usage, and the table the size of each collection", async () => {
  assert.match(await shows("#usage-text"), /^About [\d.,]+ k?M?B of the [\d.,]+ [MG]B that this browser allows$/);
  assert.equal(await page.isVisible("#usage"), true);
  await click("[data-load=weather]");
  await click('[data-add="100000"]');
  assert.deepEqual((await row("sensors")).slice(0, 2), ["100,000", "100"]);
  assert.deepEqual((await row("weather")).slice(4), ["no limit", "no limit"]);
  assert.match((await row("sensors"))[2]!, /^\d{3} kB$/);
  assert.equal((await row("sensors"))[2], await shows("#stored"));
  await screenshot("storage", ".storage");
});

test("persistent storage is requested, and the answer is shown", async () => {
  const answer = await page.evaluate(() => {
    navigator.storage.persist = async () => true; // A browser's answer depends on its history; here it grants it.
    return navigator.storage.persisted();
  });
  assert.equal(answer, false);
  await page.click("#persist");
  await page.waitForFunction(() => document.getElementById("persist-text")!.textContent === "The browser keeps the data until you delete it.");
  assert.equal(await page.isVisible("#persist"), false);
});

test("a budget of bytes is applied, and a pass deletes the oldest buckets until it is met", async () => {
  await page.fill("#keep-size", "100");
  await page.selectOption("#keep-size-unit", "kB");
  assert.match(await shows("#keep-code"), /collMod: "sensors", expireAfterSeconds: "off", maxBytes: 100000 \}/);
  await click("#keep [type=submit]");
  assert.equal((await row("sensors"))[5], "100 kB");
  assert.equal(await count("#measurements"), 100_000, "nothing goes before the pass");
  await click("#expire");
  assert.match(await shows("#expired"), /^\d\d,000 measurements in \d\d buckets deleted, [\d.]+ kB\.$/);
  const left = await count("#measurements");
  assert.ok(left > 0 && left < 60_000, String(left));
  assert.match((await row("sensors"))[2]!, /^[89]\d(\.\d)? kB$|^100 kB$/);
  await click("[data-days=all]");
  assert.notEqual(await page.inputValue("#from"), "2025-01-01", "the oldest are gone");
  await click("#expire");
  assert.equal(await shows("#expired"), "Nothing exceeded the limits.");
  await page.reload();
  await click("[name=collection][value=sensors]");
  assert.deepEqual([await page.inputValue("#keep-size"), await page.inputValue("#keep-size-unit")], ["100", "kB"]);
  await page.fill("#keep-size", "");
  await click("#keep [type=submit]");
  assert.equal((await row("sensors"))[5], "no limit");
});

test("an age is applied after a preview of what is older, and removed again", async () => {
  await click("[name=collection][value=weather]");
  await page.fill("#keep-age", "2");
  await page.selectOption("#keep-unit", "years");
  await click("#keep-code");
  assert.match(await shows("#keep-hint"), /^8,759 measurements are older than that/);
  await click("#keep [type=submit]");
  assert.equal((await row("weather"))[4], "2 years");
  assert.deepEqual([await page.inputValue("#keep-age"), await page.inputValue("#keep-unit")], ["2", "years"]);
  await click("#expire");
  assert.match(await shows("#expired"), /^8,759 measurements in \d+ buckets deleted/);
  assert.equal(await count("#measurements"), 0);
  await page.fill("#keep-age", "");
  await click("#keep [type=submit]");
  assert.equal((await row("weather"))[4], "no limit");
});

test("the keyboard reaches it, fields have labels, and nothing overflows", async () => {
  const reached = await reachedByKeyboard();
  for (const control of ["keep-age", "keep-unit", "keep-size", "keep-size-unit", "keep submit", "expire", "persist"]) assert.ok(reached.has(control), control);
  await assertLabelledAndFitting();
  assert.deepEqual(complaints, []);
});

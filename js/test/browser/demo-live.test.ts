// The demo page: a sensor that writes, and charts that follow in several tabs.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { assertLabelledAndFitting, browser, click, complaints, count, idle, page, paintedPixels, reachedByKeyboard, screenshot, shows, showsSoon, visit } from "./demo-page.js";

/** Waits until the time axis of the live chart has advanced several times. */
async function moves(tab: Page): Promise<void> {
  const before = await tab.textContent("#live-state");
  await tab.waitForFunction((before) => document.getElementById("live-state")!.textContent !== before, before);
}

test("Start writes and draws the last minute, Stop ends it", async () => {
  assert.equal(await page.isVisible("#live-chart"), false);
  await page.selectOption("#live-rate", "100");
  await click("#live-start");
  assert.equal(await shows("#live-start"), "Stop");
  await showsSoon("#live-state", /^[\d,]{2,} points in the last minute; [\d,]{2,} written here as “tab 1”$/);
  await moves(page);
  assert.ok((await paintedPixels("#live-chart"))[0]! > 200);
  await click("#live-start");
  assert.equal(await shows("#live-start"), "Start");
  await showsSoon("#live-state", /^[\d,]+ points in the last minute$/);
  assert.match(await shows("#live-tasks"), /^[\d,]+ results of the live query, brought up to date (from the new rows|by running the query again)\. Tasks of this page above 50 ms: [\d,]+/);
});

test("it has a tab among the collections, with all written rows and a retention of an hour", async () => {
  await click("[name=collection][value=live]");
  assert.ok((await count("#measurements")) >= 10);
  assert.deepEqual(await page.locator("#series label").allTextContents(), ["tab 1"]);
  assert.equal(await page.locator("#charts figure").count(), 2);
  await page.fill("#console-text", 'db.listCollections({ name: "live" })');
  await page.check("[name=console-form][value=documents]");
  await click("#console [type=submit]");
  assert.match(await shows("#console-output"), /expireAfterSeconds: 3600/);
});

test("two tabs at once draw the rows of both, each under its own name", async () => {
  await click("#live-start");
  const other = await browser.newPage();
  await visit(other);
  await showsSoon("#live-state", /points in the last minute$/, other);
  await other.click("#live-start");
  await showsSoon("#live-state", /^[\d,]+ points of 2 tabs in the last minute; [\d,]+ written here as “tab 2”$/, other);
  await page.bringToFront();
  await showsSoon("#live-state", /^[\d,]+ points of 2 tabs in the last minute; [\d,]+ written here as “tab 1”$/);
  assert.deepEqual((await page.locator("#live-chart .u-legend th").allTextContents()).slice(1), ["tab 1", "tab 2"]);
  await screenshot("live", ".live");

  await click("#live-start");
  await moves(page); // The other one still writes, and this one still follows.
  await other.close();
  await click("#live-start");
  await showsSoon("#live-state", /written here as “tab 1”$/);
});

test("a collection that another tab creates or drops appears and disappears among the tabs", async () => {
  const other = await browser.newPage();
  await visit(other);
  const ask = async (text: string): Promise<void> => {
    await other.fill("#console-text", text);
    await other.click("#console [type=submit]");
    await idle(other);
  };
  await ask('db.createCollection("theirs", { timeseries: { timeField: "t" } })');
  await page.bringToFront();
  await page.waitForSelector("[name=collection][value=theirs]");
  await click("[name=collection][value=theirs]");
  await ask('db.dropCollection("theirs")');
  await page.waitForFunction(() => !document.querySelector("[name=collection][value=theirs]"));
  await idle();
  assert.equal(await page.isChecked("[name=collection][value=weather]"), true);
  await other.close();
});

test("it stops by itself when its collection is dropped", async () => {
  await click("#drop");
  await click("#drop-yes");
  await page.waitForFunction(() => document.getElementById("live-start")!.textContent === "Start");
  await idle();
  assert.equal(await page.isVisible("#live-chart"), false);
  assert.equal(await page.locator("[name=collection][value=live]").count(), 0);
});

test("the keyboard reaches it, and nothing overflows", async () => {
  const reached = await reachedByKeyboard();
  assert.ok(reached.has("live-start") && reached.has("live-rate"));
  await page.focus("#live-start");
  await page.keyboard.press("Space");
  await showsSoon("#live-state", /written here/);
  await assertLabelledAndFitting();
  await page.keyboard.press("Space");
  await idle();
  assert.deepEqual(complaints, []);
});

// The examples of docs/react.md, docs/vue.md and docs/svelte.md, built by Vite, in real Chromium.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import vue from "@vitejs/plugin-vue";
import type { Page } from "playwright-core";
import { build, type PluginOption } from "vite";
import { errors, running, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

const PLUGINS: Record<string, PluginOption[]> = { react: [], vue: [vue()], svelte: [svelte({ configFile: false })] };

const out = mkdtempSync(join(tmpdir(), "timepail-frameworks-"));
useBrowser({ "/apps/": out });

before(async () => {
  for (const [name, plugins] of Object.entries(PLUGINS)) {
    await build({
      root: join(process.cwd(), "examples", name),
      base: "./",
      logLevel: "error",
      configFile: false,
      plugins,
      resolve: {
        alias: [
          { find: /^timepail$/, replacement: join(process.cwd(), "dist/index.js") },
          { find: /^timepail\/(\w+)$/, replacement: join(process.cwd(), "dist/$1.js") },
        ],
      },
      // Development mode, which mounts twice and warns about misuse.
      define: { "process.env.NODE_ENV": '"development"' },
      build: { outDir: join(out, name), emptyOutDir: true, minify: false },
    });
  }
});

after(() => rmSync(out, { recursive: true, force: true }));

/** The number of open databases in the page, counted outside the package. */
const COUNT = `
  globalThis.channels = 0;
  globalThis.openings = 0;
  globalThis.listeners = 0;
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (...args) { openings++; return open.apply(this, args); };
  const { close } = BroadcastChannel.prototype;
  globalThis.BroadcastChannel = class extends BroadcastChannel { constructor(name) { super(name); channels++; } };
  BroadcastChannel.prototype.close = function () { channels--; close.call(this); };
  const { addEventListener: add, removeEventListener: remove } = globalThis;
  globalThis.addEventListener = (type, ...rest) => { if (type === "pageshow") listeners++; add.call(globalThis, type, ...rest); };
  globalThis.removeEventListener = (type, ...rest) => { if (type === "pageshow") listeners--; remove.call(globalThis, type, ...rest); };
`;
declare const channels: number;
declare const openings: number;
declare const listeners: number;

/** The example in a page that runs `script` first, over a database with one reading of the attic. */
async function app(name: string, script = COUNT): Promise<{ page: Page; said: string[]; thrown: string[] }> {
  const page = await running().newPage();
  const [said, thrown]: [string[], string[]] = [[], []];
  page.on("pageerror", (error) => thrown.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
  await page.addInitScript(script);
  const other = await tab();
  await other.evaluate(async () => {
    const db = await timepail.open("home");
    await db.dropDatabase();
    const readings = await db.createCollection("readings", { timeseries: { timeField: "at", metaField: "room" } });
    await readings.insertOne({ at: new Date(), room: "attic", temp: 12 });
    await db.close();
  });
  await page.goto(new URL(`/apps/${name}/index.html`, other.url()).href);
  await other.close();
  return { page, said, thrown };
}

const rows = (page: Page): Promise<string[]> => page.evaluate(() => Array.from(document.querySelectorAll("li"), (row) => row.textContent));

async function shows(page: Page, expected: string[]): Promise<void> {
  const wanted = JSON.stringify(expected);
  const found = (wanted: string) => !!document.querySelector("ul") && JSON.stringify(Array.from(document.querySelectorAll("li"), (row) => row.textContent)) === wanted;
  await page.waitForFunction(found, wanted, { timeout: 15_000 }).catch(async () => assert.deepEqual(await rows(page), expected));
}

const held = (page: Page): Promise<number> =>
  page.evaluate(async () => (await navigator.locks.query()).held!.filter(({ name }) => name!.startsWith("timepail:home:")).length);

for (const name of Object.keys(PLUGINS)) {
  test(`${name}: a component shows what is stored, and what is inserted here and in another tab`, async () => {
    const { page, said, thrown } = await app(name);
    await shows(page, ["attic: 1 readings, 12.0 °C"]);
    await page.getByText("Measure").click();
    await shows(page, ["attic: 1 readings, 12.0 °C", "kitchen: 1 readings, 21.0 °C"]);
    const other = await tab();
    await other.evaluate(async () => {
      const db = await timepail.open("home");
      await db.collection("readings").insertMany([["kitchen", 23], ["attic", 14]].map(([room, temp], n) => ({ at: new Date(n), room, temp })));
      await db.close();
    });
    await shows(page, ["attic: 2 readings, 13.0 °C", "kitchen: 2 readings, 22.0 °C"]);
    await page.locator("input").fill("14");
    await shows(page, ["attic: 1 readings, 14.0 °C", "kitchen: 2 readings, 22.0 °C"]);
    assert.deepEqual([said, thrown], [[], []]);
    await Promise.all([page.close(), other.close()]);
  });

  test(`${name}: the database is opened once; unmounting closes it and leaves nothing behind, and mounting opens it again`, async () => {
    const { page, said, thrown } = await app(name);
    const shown = ["attic: 1 readings, 12.0 °C"];
    const open = async (): Promise<number[]> => [await held(page), ...(await page.evaluate(() => [channels, openings, listeners]))];
    await shows(page, shown);
    assert.deepEqual(await open(), [1, 1, 1, 1]);
    for (const times of [1, 2]) {
      await page.getByText("Hide").click();
      await page.waitForFunction(() => channels === 0);
      // A promise as a predicate would be truthy at once.
      while ((await held(page)) > 0);
      assert.deepEqual(await open(), [0, 0, times, 0]);
      await page.getByText("Show").click();
      await shows(page, shown);
      assert.deepEqual(await open(), [1, 1, times + 1, 1]);
    }
    assert.deepEqual([said, thrown], [[], []]);
    await page.close();
  });

  test(`${name}: a database that does not open is an error of the framework, which its error boundaries catch`, async () => {
    const { page, said, thrown } = await app(name, `
      IDBFactory.prototype.open = () => { throw new DOMException("The operation is insecure.", "SecurityError"); };
      for (const type of ["error", "unhandledrejection"]) addEventListener(type, () => (globalThis.failed = true));
    `);
    await page.waitForFunction(() => "failed" in globalThis);
    assert.match(thrown.join(), /SecurityError/);
    assert.deepEqual(said.filter((text) => !/SecurityError|error boundary|Unhandled error during execution/.test(text)), []);
    await page.close();
  });
}

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

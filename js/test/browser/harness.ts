// A browser and a server for the tests of a file: pages that have the built package as `timepail`.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { build } from "esbuild";
import type { BrowserContext, Page } from "playwright-core";
import { launchBrowser } from "../../scripts/browsers.mjs";
import { serve } from "../../scripts/serve.mjs";

/** Which browser: `chromium`, `chromium-sqlite`, `firefox` or `webkit`. */
export const BROWSER = process.env["BROWSER"] ?? "chromium";

/** Whether the engine is in a worker: `WORKER` is set. */
export const IN_WORKER = process.env["WORKER"] !== undefined;

/** Errors of pages that no test handled. */
export const errors: string[] = [];

let server: { url: string; close: () => Promise<void> };
let profile: string;
let browser: BrowserContext;

let options: { keepsPages?: boolean };

/**
 * Starts server and browser before the tests of the file and stops them afterwards. `more` maps URL prefixes to further folders;
 * `keepsPages` leaves the back/forward cache on.
 */
export function useBrowser(more: Record<string, string> = {}, browserOptions: typeof options = {}): void {
  options = browserOptions;
  before(async () => {
    server = await serve({ port: 0, root: join(process.cwd(), "test/browser/page"), more });
    profile = mkdtempSync(join(tmpdir(), "timepail-test-"));
    browser = await launchBrowser(BROWSER, profile, options);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
    rmSync(profile, { recursive: true, force: true });
  });
}

/** Ends the browser and starts it again over the same profile. */
export async function restart(): Promise<void> {
  await browser.close();
  browser = await launchBrowser(BROWSER, profile, options);
}

/** The browser that runs now. */
export const running = (): BrowserContext => browser;

/** A tab with the package loaded as `timepail`, or another page that loads it. */
export async function tab(path = "index.html"): Promise<Page> {
  const page = await browser.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`${server.url}/${path}${IN_WORKER ? "?worker" : ""}`);
  await loaded(page);
  return page;
}

/** Waits until a page has the package. */
export async function loaded(page: Page): Promise<void> {
  await page.waitForFunction(() => "timepail" in globalThis);
}

/** A script with the package inside: import maps do not reach workers. `contents` imports it from "./dist/index.js". */
export async function bundled(contents: string): Promise<string> {
  const stdin = { contents, resolveDir: process.cwd() };
  const { outputFiles } = await build({ stdin, bundle: true, format: "esm", platform: "browser", write: false, logLevel: "silent" });
  return outputFiles[0]!.text;
}

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

/** `make soak-browsers` tests the browser that people use, not Chromium's headless shell. */
const IN_ALL = process.env["ALL_BROWSERS"] !== undefined;

/** Errors of pages that no test handled. */
export const errors: string[] = [];

let server: { url: string; close: () => Promise<void> };

interface Options {
  keepsPages?: boolean;
}

/** Whether the options need another browser. Only Chromium has the back/forward cache off by default. */
const isOther = (left: Options, wanted: Options): boolean => BROWSER.startsWith("chromium") && left.keepsPages !== wanted.keepsPages;

/** A browser with a profile of its own. */
class Running {
  readonly #profile = mkdtempSync(join(tmpdir(), "timepail-test-"));
  readonly options: Options;
  browser!: BrowserContext;

  constructor(options: Options) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.browser = await launchBrowser(BROWSER, this.#profile, { ...this.options, ...(IN_ALL && { isWhole: true }) });
  }

  async end(): Promise<void> {
    await this.browser?.close();
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

/**
 * Set by js/scripts/test.mjs if several files run in this process, one after another. Each file leaves its browser here for the next one. Each has a server of its
 * own, and so an origin of its own.
 */
const { together } = globalThis as { together?: { left?: Running } };
let current: Running;

/** The pages of this file. */
const pages = new Set<Page>();

/**
 * Starts server and browser before the tests of the file and stops them afterwards. `more` maps URL prefixes to further folders;
 * `keepsPages` leaves the back/forward cache on.
 */
export function useBrowser(more: Record<string, string> = {}, options: Options = {}): void {
  before(async () => {
    server = await serve({ port: 0, root: join(process.cwd(), "test/browser/page"), more });
    const left = together?.left;
    if (left && !isOther(left.options, options)) {
      current = left;
      return;
    }
    await left?.end();
    current = new Running(options);
    if (together) together.left = current;
    await current.start();
  });
  after(async () => {
    if (!together) await current.end();
    // Closing fails for a page that the test has closed itself, which does not matter.
    else await Promise.allSettled([...pages].map((page) => page.close()));
    await server?.close();
  });
}

/** Ends the browser and starts it again over the same profile. */
export async function restart(): Promise<void> {
  await current.browser.close();
  await current.start();
}

/** The browser that runs now. */
export const running = (): BrowserContext => current.browser;

/** A tab with the package loaded as `timepail`, or another page that loads it. */
export async function tab(path = "index.html"): Promise<Page> {
  const page = await running().newPage();
  pages.add(page);
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`${server.url}/${path}${IN_WORKER ? "?worker" : ""}`);
  await loaded(page);
  return page;
}

/** Waits until a page has the package. */
export async function loaded(page: Page): Promise<void> {
  await page.waitForFunction(() => "timepail" in globalThis);
}

/** A script that contains the package, because import maps do not apply to workers. `contents` imports it from "./dist/index.js". */
export async function bundled(contents: string): Promise<string> {
  const stdin = { contents, resolveDir: process.cwd() };
  const { outputFiles } = await build({ stdin, bundle: true, format: "esm", platform: "browser", write: false, logLevel: "silent" });
  return outputFiles[0]!.text;
}

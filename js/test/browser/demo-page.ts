// Opens the demo page in Chromium, for tests that use it like a visitor. Importing this module starts a server and a browser for the test file.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { launchChromium } from "../../scripts/chromium.mjs";
import { serve } from "../../scripts/serve.mjs";

const SCREENSHOTS = process.env["SCREENSHOT_DIR"];

let server: { url: string; close: () => Promise<void> };
let profile: string;
export let browser: BrowserContext;
export let page: Page;
/** Errors and warnings of the page and its console. */
export const complaints: string[] = [];

before(async () => {
  server = await serve({ port: 0 });
  profile = mkdtempSync(join(tmpdir(), "timepail-demo-"));
  await start();
});

after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(profile, { recursive: true, force: true });
});

/** Starts the browser and opens the page. */
export async function start(): Promise<void> {
  browser = await launchChromium(profile, { viewport: { width: 1280, height: 900 } });
  page = browser.pages()[0] ?? (await browser.newPage());
  await visit(page);
}

/** Opens the page in a tab. */
export async function visit(tab: Page): Promise<void> {
  tab.on("pageerror", (error) => complaints.push(error.message));
  tab.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  tab.on("request", (request) => {
    if (!/^(http:\/\/127\.0\.0\.1|data:|blob:)/.test(request.url())) complaints.push(`asked for ${request.url()}`);
  });
  await tab.goto(`${server.url}/`);
  await idle(tab);
}

/** Waits until the page is no longer busy. */
export async function idle(tab = page): Promise<void> {
  const isIdle = (): boolean => !("busy" in document.body.dataset) && document.querySelector("[name=collection]:checked") !== null;
  const broken = (error: Error): void => assert.fail(`${error.message}; the page says: ${complaints.join("; ")}`);
  await tab.waitForFunction(isIdle, null, { timeout: 60_000 }).catch(broken);
}

export async function click(selector: string): Promise<void> {
  await page.click(selector);
  await idle();
}

/** Clicks on Cancel as soon as the bar is past `value`, from inside the page: on a busy machine, a click from outside may come too late. */
export async function cancelPast(value: number): Promise<void> {
  const cancelled = (value: number): boolean => {
    const isPast = !document.querySelector<HTMLElement>("#progress")!.hidden && document.querySelector("progress")!.value > value;
    if (isPast) document.querySelector<HTMLElement>("#cancel")!.click();
    return isPast;
  };
  await page.waitForFunction(cancelled, value);
  await idle();
}

export async function shows(selector: string): Promise<string> {
  return (await page.textContent(selector)) ?? "";
}

/** Waits until the text of an element matches. */
export async function showsSoon(selector: string, pattern: RegExp, tab = page): Promise<string> {
  const matches = ([selector, source]: string[]): boolean => new RegExp(source!, "s").test(document.querySelector(selector!)?.textContent ?? "");
  await tab.waitForFunction(matches, [selector, pattern.source]);
  return (await tab.textContent(selector)) ?? "";
}

export async function count(selector: string): Promise<number> {
  return Number((await shows(selector)).replaceAll(",", ""));
}

/** The number of painted pixels of each canvas in `where`. */
export function paintedPixels(where = "#charts"): Promise<number[]> {
  return page.evaluate(
    (where) =>
      [...document.querySelectorAll<HTMLCanvasElement>(`${where} canvas`)].map((canvas) => {
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        let painted = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] !== 0) painted++;
        return painted;
      }),
    where,
  );
}

/** Every control that the keyboard reaches from the top of the page, by id or else by its label. */
export async function reachedByKeyboard(): Promise<Set<string>> {
  await page.reload();
  await idle();
  const reached = new Set<string>();
  for (let i = 0; i < 150; i++) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement & HTMLElement;
      const { load, add, days, copy } = element.dataset;
      return element === document.body ? "" : element.id || (load ?? add ?? days ?? copy) || element.name || `${element.closest("form")?.id} ${element.getAttribute("type")}`;
    });
    if (name === "") break; // Past the last one.
    reached.add(name);
  }
  return reached;
}

/** Asserts that every field has a label, and that nothing overflows at the widths of a tablet and a phone. */
export async function assertLabelledAndFitting(): Promise<void> {
  const unlabelled = await page.evaluate(() =>
    [...document.querySelectorAll<HTMLInputElement>("input, select, textarea")]
      .filter((input) => !input.labels?.length && !input.ariaLabel)
      .map((input) => input.outerHTML),
  );
  assert.deepEqual(unlabelled, []);
  for (const wanted of [1000, 800, 375]) {
    await page.setViewportSize({ width: wanted, height: 812 });
    await page.waitForFunction((wanted) => document.documentElement.scrollWidth === wanted, wanted);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Screenshots of the page, or of a part, in both widths and colour schemes, if SCREENSHOT_DIR is set. */
export async function screenshot(name: string, selector?: string): Promise<void> {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [width, height] of [[1280, 900], [375, 812]] as const) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await idle();
      const path = join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`);
      if (selector) await page.locator(selector).screenshot({ path });
      else await page.screenshot({ path, fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
  await idle();
}

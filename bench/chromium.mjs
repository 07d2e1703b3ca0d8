// A page of headless Chromium with the benchmark's modules, over a fresh profile.

import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../js/scripts/chromium.mjs";
import { serve } from "../js/scripts/serve.mjs";

/**
 * Calls `work` with the page as soon as `globalThis.bench` exists; `globalThis.progress(line)` prints to standard error.
 * `more` maps URL prefixes to further folders that the page may read. `afterwards` gets the profile after the browser has ended.
 */
export async function withPage(work, more = {}, afterwards = () => {}) {
  const profile = mkdtempSync(join(tmpdir(), "timepail-bench-"));
  const server = await serve({ port: 0, root: join(dirname(fileURLToPath(import.meta.url)), "page"), more });
  let browser;
  try {
    browser = await launchChromium(profile, { isWhole: true });
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(`page: ${error.message}`));
    await page.goto(`${server.url}/index.html`);
    await page.waitForFunction(() => globalThis.bench);
    await page.exposeFunction("progress", (line) => process.stderr.write(`${line}\n`));
    const result = await work(page);
    await browser.close();
    afterwards(profile);
    return result;
  } finally {
    await browser?.close();
    await server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Bytes of all files under `folder`. */
export function bytesUnder(folder) {
  const files = readdirSync(folder, { recursive: true }).map((name) => statSync(join(folder, name)));
  return files.filter((file) => file.isFile()).reduce((sum, { size }) => sum + size, 0);
}

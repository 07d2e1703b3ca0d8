// Starts headless Chromium for tests and benchmarks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Stop, TOOLS } from "./steps.mjs";

const USUAL = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser's program: CHROME_PATH, else what the toolchain script found, else a usual place. */
export function chromiumPath() {
  const noted = join(TOOLS, "browser-env");
  const fromTools = existsSync(noted) ? /CHROME_PATH="([^"]+)"/.exec(readFileSync(noted, "utf8"))?.[1] : undefined;
  const path = process.env.CHROME_PATH ?? fromTools ?? USUAL.find((file) => existsSync(file));
  if (!path) throw new Stop("there is no Chromium: run js/scripts/toolchain.sh browser, or set CHROME_PATH");
  return path;
}

/**
 * A browser with `profile` (a folder) as its profile; what a page stores lives as long as the folder.
 *
 * Without a sandbox, so that it starts as root in a container: it only ever loads pages of this project from loopback. The
 * switches keep it from calling home. `features` are switched on beside those that are by themselves. `keepsPages` leaves the
 * back/forward cache on, which playwright-core does not know: to go back, pages call `history.back`.
 */
export function launchChromium(profile, { features = [], keepsPages = false, ...options } = {}) {
  const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath(),
    headless: true,
    chromiumSandbox: false,
    args: features.length > 0 ? [...args, `--enable-features=${features.join(",")}`] : args,
    ...(keepsPages && { ignoreDefaultArgs: ["--disable-back-forward-cache"] }),
    ...options,
  });
}

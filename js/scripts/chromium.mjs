// Starts headless Chromium for tests and benchmarks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Stop, TOOLS } from "./steps.mjs";

const USUAL = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** A variable of the environment, else what the toolchain script found. */
function found(variable) {
  const noted = join(TOOLS, "browser-env");
  const fromTools = existsSync(noted) ? new RegExp(`^export ${variable}="([^"]+)"`, "m").exec(readFileSync(noted, "utf8"))?.[1] : undefined;
  return process.env[variable] ?? fromTools;
}

/** The browser's program. */
function chromiumPath() {
  const path = found("CHROME_PATH") ?? USUAL.find((file) => existsSync(file));
  if (!path) throw new Stop("there is no Chromium: run js/scripts/toolchain.sh browser, or set CHROME_PATH");
  return path;
}

/** The same engine without tabs and menus, which starts, and opens a page, in less than half the time; the browser itself where it is missing. */
const shellPath = () => found("CHROME_SHELL_PATH") ?? chromiumPath();

/**
 * A browser with `profile` (a folder) as its profile; what a page stores lives as long as the folder.
 *
 * Without a sandbox, so that it starts as root in a container: it only ever loads pages of this project from loopback. The
 * switches keep it from calling home. `features` are switched on beside those that are by themselves. `keepsPages` leaves the
 * back/forward cache on, which playwright-core does not know: to go back, pages call `history.back`. `isWhole` starts the browser
 * that people use, which alone has that cache.
 */
export function launchChromium(profile, { features = [], keepsPages = false, isWhole = keepsPages, ...options } = {}) {
  const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launchPersistentContext(profile, {
    executablePath: isWhole ? chromiumPath() : shellPath(),
    headless: true,
    chromiumSandbox: false,
    args: features.length > 0 ? [...args, `--enable-features=${features.join(",")}`] : args,
    ...(keepsPages && { ignoreDefaultArgs: ["--disable-back-forward-cache"] }),
    ...options,
  });
}

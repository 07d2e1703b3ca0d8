// Starts headless Chromium for tests and benchmarks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Stop, TOOLS } from "./steps.mjs";

const USUAL = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The value of an environment variable, or else the one that the toolchain script found. */
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

/** The headless shell: the same engine without tabs and menus. It starts, and opens a page, in less than half the time. If it is missing, the browser itself. */
const shellPath = () => found("CHROME_SHELL_PATH") ?? chromiumPath();

/**
 * Starts a browser with the folder `profile` as its profile. What a page stores lives as long as the folder.
 *
 * The sandbox is off, so that the browser starts as root in a container. It only loads pages of this project from loopback. The
 * switches stop its background requests. `features` are enabled in addition to the default ones. `keepsPages` leaves the
 * back/forward cache on. playwright-core does not support that cache, so pages call `history.back` to go back. `isWhole` starts
 * the browser that people use, because only that one has the cache.
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

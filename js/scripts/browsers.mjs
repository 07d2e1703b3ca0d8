// Starts the browsers of the tests. Their pages all have `goto`, `evaluate`, `waitForFunction`, `reload`, `close` and "pageerror".

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { launchChromium } from "./chromium.mjs";
import { Stop, TOOLS } from "./steps.mjs";
import { launchWebKit } from "./webkit.mjs";

const LAUNCH = {
  chromium: launchChromium,
  // Chromium's other IndexedDB engine, which still needs a flag.
  "chromium-sqlite": (profile, options) => launchChromium(profile, { ...options, features: ["IdbSqliteBackingStore"] }),
  firefox: launchFirefox,
  webkit: launchWebKit,
};

/**
 * Starts a browser by name: `chromium`, `chromium-sqlite`, `firefox` or `webkit`. What its pages store lives as long as the folder `profile`,
 * or in WebKit as long as the browser. Only Chromium takes options (chromium.mjs).
 */
export function launchBrowser(name, profile, options) {
  if (!Object.hasOwn(LAUNCH, name)) throw new Stop(`there is no browser ${name}; there are ${Object.keys(LAUNCH).join(", ")}`);
  return LAUNCH[name](profile, options);
}

async function launchFirefox(profile) {
  // Imported here, so that only tests in Firefox load it.
  const { default: puppeteer } = await import("puppeteer-core");
  return puppeteer.launch({ browser: "firefox", executablePath: firefoxPath(), headless: true, userDataDir: profile });
}

function firefoxPath() {
  const noted = join(TOOLS, "firefox-env");
  const fromTools = existsSync(noted) ? /FIREFOX_PATH="([^"]+)"/.exec(readFileSync(noted, "utf8"))?.[1] : undefined;
  const path = process.env.FIREFOX_PATH ?? fromTools;
  if (!path) throw new Stop("there is no Firefox: run js/scripts/toolchain.sh firefox, or set FIREFOX_PATH");
  return path;
}

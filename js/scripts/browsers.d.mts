import type { BrowserContext } from "playwright-core";
/** Starts a browser, `chromium`, `chromium-sqlite` or `firefox`, with `profile` (a folder) as its profile; of its type only what all have is to be used. */
export function launchBrowser(name: string, profile: string): Promise<BrowserContext>;

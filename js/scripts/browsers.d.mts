import type { BrowserContext } from "playwright-core";
/**
 * Starts a browser, `chromium`, `chromium-sqlite`, `firefox` or `webkit`, with `profile` (a folder) as its profile; of its type only what all have is to be used.
 * `keepsPages`: with the back/forward cache.
 */
export function launchBrowser(name: string, profile: string, options?: { keepsPages?: boolean }): Promise<BrowserContext>;

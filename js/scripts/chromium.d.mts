import type { BrowserContext } from "playwright-core";
/** Starts headless Chromium with `profile` (a folder) as its profile. */
export function launchChromium(profile: string, options?: object): Promise<BrowserContext>;
/** The browser's program. */
export function chromiumPath(): string;

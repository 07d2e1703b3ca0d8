// The memory that engines may take where this is not a page.

import type { OpenEngine } from "../engine.js";

/** An engine whose parameter `readCacheBytes` has the given default. */
export function withReadCache(openEngine: OpenEngine, readCacheBytes: number): OpenEngine {
  return (name, options, host) => {
    const { parameters = {} } = options;
    // The engine refuses parameters that are not an object.
    const more = parameters && typeof parameters === "object" ? { readCacheBytes, ...parameters } : parameters;
    return openEngine(name, { ...options, parameters: more }, host);
  };
}

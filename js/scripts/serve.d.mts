/**
 * Starts the demo server on 127.0.0.1; without `port` on 8642 or the next free one, with 0 on any. `more` maps URL prefixes to further
 * folders. `url` has no slash at the end.
 */
export function serve(options?: { port?: number; root?: string; more?: Record<string, string> }): Promise<{ url: string; close: () => Promise<void> }>;

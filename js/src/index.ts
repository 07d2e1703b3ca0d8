// Entry for browsers, workers and bundlers: the module is fetched from beside this file.

import { openWith, type Database } from "./database.js";
import type { OpenOptions } from "./types.js";
import { wasmEngine } from "./wasm.js";

export * from "./api.js";

/**
 * Opens a database, and creates it if it is new. The WebAssembly module is loaded by the first call.
 *
 * Several tabs and workers may have the same database open at the same time.
 *
 * @param name - one IndexedDB database has this name
 * @throws LoadError when the WebAssembly module cannot be loaded; the message says what to do
 * @example
 * ```ts
 * const db = await open("plant");
 * await db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } });
 * await db.collection("weather").insertMany([{ at: new Date(), station: 7, temp: 21.5 }]);
 * ```
 */
export function open(name: string, options: OpenOptions = {}): Promise<Database> {
  return openWith(
    wasmEngine(
      () => options.wasm ?? new URL("./timepail.wasm", import.meta.url),
      () => options.wasmMore ?? new URL("./timepail-more.wasm", import.meta.url),
    ),
    name,
    options,
  );
}

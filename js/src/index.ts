// Entry for browsers, workers and bundlers: the module is fetched from beside this file.

import { openWith, type Database } from "./database.js";
import type { Source } from "./instance.js";
import { remoteEngine } from "./remote.js";
import type { OpenOptions } from "./types.js";
import { wasmEngine } from "./wasm.js";

export * from "./api.js";

/**
 * Opens a database, and creates it if it does not exist. The first call loads the WebAssembly module.
 *
 * Several tabs and workers can have the same database open at the same time. This function takes the place of `MongoClient` in the official driver.
 *
 * @param name - name of the database; in IndexedDB it is `timepail:<name>`
 * @throws LoadError if the WebAssembly module cannot be loaded; the message says what to do
 * @throws WorkerError if the worker that `options.worker` asks for cannot be started; the message says what to do
 * @example
 * ```ts
 * const db = await open("plant");
 * await db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } });
 * await db.collection("weather").insertMany([{ at: new Date(), station: 7, temp: 21.5 }]);
 * ```
 */
export function open(name: string, options: OpenOptions = {}): Promise<Database> {
  const source: Source = () => options.wasm ?? new URL("./timepail.wasm", import.meta.url);
  const rest: Source = () => options.wasmMore ?? new URL("./timepail-more.wasm", import.meta.url);
  const worker = options?.worker;
  return openWith(worker ? remoteEngine(worker, () => new URL("./worker.js", import.meta.url), source, rest) : wasmEngine(source, rest), name, options);
}

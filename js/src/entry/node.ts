// Entry for Node, Bun and Deno: the module is read from the file beside this one.

import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { encodeDocument } from "../bson.js";
import { openRemote } from "../client.js";
import { openWith, type Database } from "../database.js";
import type { OpenEngine } from "../engine.js";
import { LoadError, ServerError, WorkerError } from "../errors.js";
import type { Source } from "../instance.js";
import type { OpenOptions } from "../types.js";
import { wasmEngine } from "../wasm.js";
import { withReadCache } from "./read-cache.js";
import { readModule } from "./read-module.js";

export * from "../api.js";

let hasWarned = false;

/** Opens a database, as in browsers. Without `storage` it lives in memory as long as it is open, and a warning says so once. */
export function open(name: string, options: OpenOptions = {}): Promise<Database> {
  if (!hasWarned && options?.storage === undefined && typeof indexedDB === "undefined") {
    hasWarned = true;
    // Deno and Bun also have `emitWarning`, but possibly not always.
    globalThis.process?.emitWarning?.(
      `open(${JSON.stringify(name)}) keeps its data in memory and forgets it at the end. To keep it, use openFile of timepail/file, or say storage: "memory" if you mean it`,
      "TimepailWarning",
    );
  }
  const source: Source = () => readModule(options.wasm ?? new URL("./timepail.wasm", import.meta.url));
  const rest: Source = () => readModule(options.wasmMore ?? new URL("./timepail-more.wasm", import.meta.url));
  return openWith(withReadCache(options?.worker ? remoteEngine(options.worker, source, rest) : wasmEngine(source, rest), READ_CACHE_BYTES), name, options);
}

/** A process may take more memory than a page. */
const READ_CACHE_BYTES = 2 ** 28;

/** Opens engines in worker threads, which Bun and Deno have as well. */
function remoteEngine(worker: OpenOptions["worker"], source: Source, rest: Source): OpenEngine {
  const given = typeof worker === "string" || worker instanceof URL ? worker : new URL("./node-worker.js", import.meta.url);
  const address = given instanceof URL || /^file:/.test(given) ? String(given) : pathToFileURL(given).href;
  const start = (address: string): Worker => new Worker(new URL(address));
  const advice = "its script is node-worker.js of the package, or one that imports timepail/worker";
  const place = { worker, address, source, rest, encode: encodeDocument, start, advice, LoadError, ServerError, WorkerError };
  return (...opening) => openRemote(place, ...opening);
}

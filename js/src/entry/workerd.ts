// Entry for Cloudflare Workers, which compile modules only before the Worker starts.

import wasm from "./timepail.wasm";
import wasmMore from "./timepail-more.wasm";
import { openWith, type Database } from "../database.js";
import type { OpenOptions } from "../types.js";
import { wasmEngine } from "../wasm.js";
import { withReadCache } from "./read-cache.js";

export * from "../api.js";

/** A Worker has 128 MB, in which several databases may be open. */
const READ_CACHE_BYTES = 40 * 2 ** 20;

/** Opens a database, as in browsers. Without `storage` it lives in memory as long as it is open. */
export async function open(name: string, options: OpenOptions = {}): Promise<Database> {
  if (options?.worker) throw new TypeError("Cloudflare Workers start no workers: leave out the option worker");
  const engine = wasmEngine(
    () => options.wasm ?? wasm,
    () => options.wasmMore ?? wasmMore,
  );
  return openWith(withReadCache(engine, READ_CACHE_BYTES), name, options);
}

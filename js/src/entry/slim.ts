// Entry that does not guess where the module is, for libraries and bundlers whose users pass it.

import { openWith, type Database } from "../database.js";
import type { Source } from "../instance.js";
import { remoteEngine } from "../remote.js";
import type { Address, OpenOptions, WasmSource } from "../types.js";
import { wasmEngine } from "../wasm.js";

export * from "../api.js";

/** Options of `open`, with the sources of both modules. */
export interface SlimOpenOptions extends OpenOptions {
  /** Source of `timepail.wasm`: its address, a `Response`, its bytes, or the compiled module. */
  wasm: WasmSource | Promise<WasmSource>;
  /** Source of `timepail-more.wasm`. A function is called when the module is first needed. */
  wasmMore: WasmSource | Promise<WasmSource> | (() => WasmSource | Promise<WasmSource>);
  /** Runs the engine in a dedicated worker: the address of `timepail/worker`. */
  worker?: Address | undefined;
}

/**
 * Opens a database with the modules that you pass. The first call of a page decides which ones are used. Otherwise it is the same as `open` of `timepail`.
 *
 * @example
 * ```ts
 * import { open } from "timepail/slim";
 * import wasm from "timepail/timepail.wasm";              // however your bundler gives an address, bytes or a module
 * const db = await open("plant", { wasm, wasmMore: () => fetch("/assets/timepail-more.wasm") });
 * ```
 */
export function open(name: string, { wasm, wasmMore, ...options }: SlimOpenOptions): Promise<Database> {
  const { worker } = options;
  const source: Source = () => wasm;
  const rest: Source = () => (typeof wasmMore === "function" ? wasmMore() : wasmMore);
  return openWith(worker ? remoteEngine(worker, unknown, source, rest) : wasmEngine(source, rest), name, options);
}

function unknown(): never {
  throw new TypeError("timepail/slim does not know where worker.js is");
}

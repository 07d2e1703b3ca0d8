// Entry without any guess where the module is: for libraries and bundlers whose users bring it.

import { openWith, type Database } from "../database.js";
import type { OpenOptions, WasmSource } from "../types.js";
import { wasmEngine } from "../wasm.js";

export * from "../api.js";

/** Options of `open`, with the module. */
export interface SlimOpenOptions extends OpenOptions {
  /** timepail.wasm: its address, an answer, its bytes, or the module compiled already. */
  wasm: WasmSource | Promise<WasmSource>;
  /** The same of timepail-more.wasm. A function is called when it is needed for the first time. */
  wasmMore: WasmSource | Promise<WasmSource> | (() => WasmSource | Promise<WasmSource>);
}

/**
 * Opens a database with the module that you give; the first call of a page decides. Apart from that as `open` of `timepail`.
 *
 * @example
 * ```ts
 * import { open } from "timepail/slim";
 * import wasm from "timepail/timepail.wasm";              // however your bundler gives an address, bytes or a module
 * const db = await open("plant", { wasm, wasmMore: () => fetch("/assets/timepail-more.wasm") });
 * ```
 */
export function open(name: string, { wasm, wasmMore, ...options }: SlimOpenOptions): Promise<Database> {
  return openWith(
    wasmEngine(
      () => wasm,
      () => (typeof wasmMore === "function" ? wasmMore() : wasmMore),
    ),
    name,
    options,
  );
}

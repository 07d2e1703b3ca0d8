// Entry for Node, Bun and Deno: the module is read from the file beside this one.

import { openWith, type Database } from "../database.js";
import type { OpenOptions } from "../types.js";
import { wasmEngine } from "../wasm.js";
import { readModule } from "./read-module.js";

export * from "../api.js";

let hasWarned = false;

/** Opens a database, as in browsers. Without `storage` it lives in memory as long as it is open, and a warning says so once. */
export function open(name: string, options: OpenOptions = {}): Promise<Database> {
  if (!hasWarned && options?.storage === undefined && typeof indexedDB === "undefined") {
    hasWarned = true;
    // Deno and Bun have it, too, but perhaps not always.
    globalThis.process?.emitWarning?.(
      `open(${JSON.stringify(name)}) keeps its data in memory and forgets it at the end. To keep it, use openFile of timepail/file, or say storage: "memory" if you mean it`,
      "TimepailWarning",
    );
  }
  return openWith(
    wasmEngine(
      () => readModule(options.wasm ?? new URL("./timepail.wasm", import.meta.url)),
      () => readModule(options.wasmMore ?? new URL("./timepail-more.wasm", import.meta.url)),
    ),
    name,
    options,
  );
}

// Entry for Node, Bun and Deno: the module is read from the file beside this one.

import { readFile } from "node:fs/promises";
import { openWith, type Database } from "../database.js";
import { LoadError } from "../errors.js";
import type { OpenOptions, WasmSource } from "../types.js";
import { wasmEngine } from "../wasm.js";

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
      () => load(options.wasm ?? new URL("./timepail.wasm", import.meta.url)),
      () => load(options.wasmMore ?? new URL("./timepail-more.wasm", import.meta.url)),
    ),
    name,
    options,
  );
}

/** A file is read, for `fetch` does not take files everywhere; a path counts as one. */
async function load(source: WasmSource | Promise<WasmSource>): Promise<WasmSource> {
  const given = await source;
  const isFile = given instanceof URL ? given.protocol === "file:" : typeof given === "string" && !/^[a-z][a-z0-9+.-]+:/i.test(given);
  if (!isFile && !String(given).startsWith("file:")) return given;
  try {
    return await readFile(typeof given === "string" && given.startsWith("file:") ? new URL(given) : (given as URL | string));
  } catch (cause) {
    throw new LoadError(`${String(given)} cannot be read; say where the .wasm files are: open(name, { wasm, wasmMore })`, { cause });
  }
}

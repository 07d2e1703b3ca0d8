// Reads the module from a file, for runtimes that have files.

import { readFile } from "node:fs/promises";
import { LoadError } from "../errors.js";
import type { WasmSource } from "../types.js";

/** Reads files itself, because `fetch` does not accept files in every runtime. A path counts as a file. */
export async function readModule(source: WasmSource | Promise<WasmSource>): Promise<WasmSource> {
  const given = await source;
  const isFile = given instanceof URL ? given.protocol === "file:" : typeof given === "string" && !/^[a-z][a-z0-9+.-]+:/i.test(given);
  if (!isFile && !String(given).startsWith("file:")) return given;
  try {
    return await readFile(typeof given === "string" && given.startsWith("file:") ? new URL(given) : (given as URL | string));
  } catch (cause) {
    throw new LoadError(`${String(given)} cannot be read; say where the .wasm files are: open(name, { wasm, wasmMore })`, { cause });
  }
}

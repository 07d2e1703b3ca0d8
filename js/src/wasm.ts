// The engine in WebAssembly: one module and one instance a page, whatever the number of databases.

import init, { open_engine } from "./wasm/timepail.js";
import { encodeDocument } from "./bson.js";
import type { Engine, OpenEngine } from "./engine.js";
import { ServerError } from "./errors.js";
import { compileModule } from "./load.js";
import type { WasmSource } from "./types.js";

let started: Promise<unknown> | undefined;

/** Opens engines in the module that `source` gives; the first call that succeeds decides where it comes from. */
export function wasmEngine(source: () => WasmSource | Promise<WasmSource>): OpenEngine {
  return async (name, options) => {
    started ??= compileModule(source()).then((module) => init({ module_or_path: module }));
    try {
      await started;
    } catch (error) {
      // The next attempt may name a better place.
      started = undefined;
      throw error;
    }
    try {
      return (await open_engine(name, encodeDocument(options))) as Engine;
    } catch (error) {
      const { message, code, codeName } = error as ServerError;
      throw typeof code === "number" ? new ServerError({ ok: 0, errmsg: message, code, codeName }) : error;
    }
  };
}

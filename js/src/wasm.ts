// The engine in WebAssembly: one module and one instance a page, whatever the number of databases. It comes in two halves, of which the
// second is loaded by the first command that is not among the most common.

import init, { complete, open_engine } from "./wasm/timepail.js";
import { encodeDocument } from "./bson.js";
import type { Engine, OpenEngine } from "./engine.js";
import { ServerError } from "./errors.js";
import { compileModule } from "./load.js";
import type { WasmSource } from "./types.js";

let started: Promise<unknown> | undefined;
let completed: Promise<unknown> | undefined;

type Source = () => WasmSource | Promise<WasmSource>;

/** Opens engines in the module that `source` gives and `rest` completes; the first call that succeeds decides where it comes from. */
export function wasmEngine(source: Source, rest: Source): OpenEngine {
  const completion = async (): Promise<unknown> => {
    completed ??= compileModule(rest()).then(complete);
    try {
      return await completed;
    } catch (error) {
      completed = undefined;
      throw error;
    }
  };
  return async (name, options, host) => {
    started ??= compileModule(source()).then((module) => init({ module_or_path: module }));
    try {
      await started;
    } catch (error) {
      // The next attempt may name a better place.
      started = undefined;
      throw error;
    }
    try {
      return (await open_engine(name, encodeDocument(options), completion, host as never)) as Engine;
    } catch (error) {
      const { message, code, codeName } = error as ServerError;
      throw typeof code === "number" ? new ServerError({ ok: 0, errmsg: message, code, codeName }) : error;
    }
  };
}

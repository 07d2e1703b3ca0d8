// Engines in this thread: passes options to the instance of the module as BSON.

import { encodeDocument } from "./bson.js";
import type { OpenEngine } from "./engine.js";
import { instance, type Source } from "./instance.js";
import type { Explain } from "./load.js";

/** Explains with later.js. It lies beside the modules, so it may be missing as well. */
const explain: Explain = (failure) =>
  import("./later.js").then(
    ({ loadFailure }) => loadFailure(failure),
    () => `timepail's WebAssembly module cannot be loaded, nor later.js: ${String(failure.cause)}; serve the files of the package beside each other, or say where they are: open(name, { wasm, wasmMore })`,
  );

/** Opens engines in the module from `source`, which `rest` completes. */
export function wasmEngine(source: Source, rest: Source): OpenEngine {
  const open = instance(source, rest, explain);
  return (name, options, host) => open(name, options.storage, encodeDocument(options), host);
}

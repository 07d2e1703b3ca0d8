// Engines of this thread: the instance of the module, and options as BSON.

import { encodeDocument } from "./bson.js";
import type { OpenEngine } from "./engine.js";
import { instance, type Source } from "./instance.js";

/** Opens engines in the module that `source` gives and `rest` completes. */
export function wasmEngine(source: Source, rest: Source): OpenEngine {
  const open = instance(source, rest);
  return (name, options, host) => open(name, options.storage, encodeDocument(options), host);
}

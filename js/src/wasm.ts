// Engines in this thread: passes options to the instance of the module as BSON.

import { encodeDocument } from "./bson.js";
import type { OpenEngine } from "./engine.js";
import { instance, type Source } from "./instance.js";

/** Opens engines in the module from `source`, which `rest` completes. */
export function wasmEngine(source: Source, rest: Source): OpenEngine {
  const open = instance(source, rest);
  return (name, options, host) => open(name, options.storage, encodeDocument(options), host);
}

// Engines in workers, as the entries for browsers know them: all of it is in the worker's file, which is loaded when it is needed.

import { encodeDocument } from "./bson.js";
import type { OpenEngine } from "./engine.js";
import { LoadError, ServerError, WorkerError } from "./errors.js";
import type { Source } from "./instance.js";
import type { OpenOptions } from "./types.js";

/** Where the build puts the comments by which webpack and Vite leave an import alone. In minified files, esbuild keeps none. */
declare function THIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE(address: string): string;

/** Opens engines in workers. `usual` is the address of `worker.js`, if `worker` is none. */
export function remoteEngine(worker: OpenOptions["worker"], usual: () => URL, source: Source, rest: Source): OpenEngine {
  return async (...opening) => {
    let address = "worker.js";
    let openRemote: typeof import("./client.js").openRemote;
    try {
      // As `fetch` and `Worker` read an address; `import` would take it from here.
      address = new Request(typeof worker === "string" || worker instanceof URL ? worker : usual()).url;
      // No bundler follows it: the file stays as it is, beside the modules.
      ({ openRemote } = await import(THIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE(address)));
      if (!openRemote) throw new TypeError("It is another script");
    } catch (cause) {
      throw new WorkerError(`${address} cannot be loaded; serve worker.js beside the package's JavaScript, or say where it is: open(name, { worker: address })`, { cause });
    }
    return openRemote({ worker, address, source, rest, encode: encodeDocument, LoadError, ServerError, WorkerError }, ...opening);
  };
}

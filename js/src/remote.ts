// Engines in workers, for the browser entries. The implementation is in the worker's file, which is loaded when it is needed.

import { encodeDocument } from "./bson.js";
import type { OpenEngine } from "./engine.js";
import { LoadError, ServerError, WorkerError } from "./errors.js";
import type { Source } from "./instance.js";
import type { OpenOptions } from "./types.js";

/** Placeholder for the comments that make webpack and Vite ignore an import. The build inserts them, because esbuild drops comments in minified files. */
declare function THIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE(address: string): string;

/** Opens engines in workers. `usual` returns the address of `worker.js`, and is used if `worker` is not an address. */
export function remoteEngine(worker: OpenOptions["worker"], usual: () => URL, source: Source, rest: Source): OpenEngine {
  return async (...opening) => {
    let address = "worker.js";
    let openRemote: typeof import("./client.js").openRemote;
    try {
      // Resolve against the page, as `fetch` and `Worker` do. `import` would resolve against this file.
      address = new Request(typeof worker === "string" || worker instanceof URL ? worker : usual()).url;
      // Bundlers do not follow this import, so the file stays unchanged beside the modules.
      ({ openRemote } = await import(THIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE(address)));
      if (!openRemote) throw new TypeError("It is another script");
    } catch (cause) {
      throw new WorkerError(`${address} cannot be loaded; serve the files of the package beside each other, or say where it is: open(name, { worker: address })`, { cause });
    }
    return openRemote({ worker, address, source, rest, encode: encodeDocument, LoadError, ServerError, WorkerError }, ...opening);
  };
}

// The engine in WebAssembly: one module and one instance per page, whatever the number of databases. The module has two halves. The
// first less common command loads the second half.

import init, { complete, open_engine } from "./wasm/timepail.js";
import type { Engine, EngineOptions } from "./engine.js";
import { ServerError } from "./errors.js";
import { compileModule, type Explain } from "./load.js";
import type { HostStorage } from "./storage.js";
import { hostTurn } from "./turn.js";
import type { WasmSource } from "./types.js";

let started: Promise<unknown> | undefined;
let completed: Promise<unknown> | undefined;

/** Returns the source of a module when it is needed. */
export type Source = () => WasmSource | Promise<WasmSource>;

/** Opens an engine. `options` are {@link EngineOptions} as BSON, and include `storage`. */
export type OpenInstance = (name: string, storage: EngineOptions["storage"], options: Uint8Array, host?: HostStorage) => Promise<Engine>;

/** Opens engines in the module from `source`, which `rest` completes. The first successful call decides where the module comes from. */
export function instance(source: Source, rest: Source, explain: Explain): OpenInstance {
  const completion = async (): Promise<unknown> =>
    (completed ??= compileModule(rest(), explain)
      .then(complete)
      .catch((error: unknown) => {
        completed = undefined;
        throw error;
      }));
  return async (name, storage, options, host) => {
    const early = storage === "indexeddb" && globalThis.indexedDB ? openEarly(name) : undefined;
    let loaded = false;
    try {
      started ??= compileModule(source(), explain).then((module) => init(module));
      await started;
      loaded = true;
      return (await open_engine(name, options, completion, host as never, early, hostTurn())) as Engine;
    } catch (error) {
      early?.then((database) => database.close(), () => {});
      // The next call may pass a source that works.
      if (!loaded) started = undefined;
      const { message, code, codeName } = error as ServerError;
      throw loaded && typeof code === "number" ? new ServerError({ ok: 0, errmsg: message, code, codeName }) : error;
    }
  };
}

/** Opens the database like the module does, while the module still loads. Both take a while, and neither needs the other. */
function openEarly(name: string): Promise<IDBDatabase> {
  const opening = new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(`timepail:${name}`, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("entries");
    request.onerror = () => reject(request.error!);
    request.onsuccess = () => {
      resolve(request.result);
      // Close on `versionchange`, so that a deletion is not blocked before the module takes over.
      request.result.onversionchange = () => request.result.close();
    };
  });
  // The module reports a failure once it is loaded.
  opening.catch(() => {});
  return opening;
}

// Loads the WebAssembly module.

import { LoadError } from "./errors.js";
import type { Failure } from "./load-failure.js";
import type { WasmSource } from "./types.js";

/** Returns the message for a module that cannot be loaded. */
export type Explain = (failure: Failure) => string | Promise<string>;

/** Compiles the module of `source`. Every failure is a {@link LoadError}. */
export async function compileModule(source: WasmSource | Promise<WasmSource>, explain: Explain): Promise<WebAssembly.Module> {
  const given = await source;
  let response: Response | undefined;
  let bytes: BufferSource | undefined;
  try {
    if (given instanceof WebAssembly.Module) return given;
    if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) bytes = given as BufferSource;
    else {
      response = given instanceof Response ? given : await fetch(given);
      if (!response.ok) throw response.status;
      // Streaming requires the MIME type, which many static servers do not know. Bun has no streaming.
      if ((WebAssembly.compileStreaming as unknown) && /^application\/wasm\b/i.test(response.headers.get("content-type") ?? "")) {
        return await WebAssembly.compileStreaming(response);
      }
      bytes = await response.arrayBuffer();
    }
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    throw new LoadError(await explain({ cause, given, response, bytes }), { cause });
  }
}

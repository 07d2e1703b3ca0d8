// Loads the WebAssembly module, and explains why it cannot be loaded.

import { LoadError } from "./errors.js";
import type { WasmSource } from "./types.js";

const ADVICE = "serve both .wasm files beside the package's JavaScript, or say where they are: open(name, { wasm, wasmMore })";

/** The first bytes of every module: NUL, "asm". */
const MAGIC = "0,97,115,109";

/** Compiles the module of `source`. Every failure is a {@link LoadError}. */
export async function compileModule(source: WasmSource | Promise<WasmSource>): Promise<WebAssembly.Module> {
  if (typeof WebAssembly === "undefined") {
    throw new LoadError("This runtime has no WebAssembly, or it is disabled");
  }
  const given = await source;
  if (given instanceof WebAssembly.Module) return given;
  try {
    if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) return await compileBytes(given as BufferSource, "The bytes given as `wasm`");
    if (typeof Response !== "undefined" && given instanceof Response) return await compileResponse(given);
    return await compileResponse(await fetchModule(given as string | URL));
  } catch (cause) {
    if (cause instanceof LoadError) throw cause;
    throw new LoadError(`timepail's WebAssembly module cannot be compiled: ${String(cause)}${policyHint(cause)}${simdHint()}`, { cause });
  }
}

async function fetchModule(address: string | URL): Promise<Response> {
  try {
    return await fetch(address);
  } catch (cause) {
    throw new LoadError(`${String(address)} cannot be fetched; ${ADVICE}`, { cause });
  }
}

async function compileResponse(response: Response): Promise<WebAssembly.Module> {
  const what = response.url || "The answer given as `wasm`";
  if (!response.ok) throw new LoadError(`${what} answered ${response.status}; ${ADVICE}`);
  // Streaming requires the MIME type, which many static servers do not know.
  const type = response.headers.get("content-type") ?? "";
  if (typeof WebAssembly.compileStreaming === "function" && /^application\/wasm\b/i.test(type)) return WebAssembly.compileStreaming(response);
  return compileBytes(await response.arrayBuffer(), what);
}

function compileBytes(source: BufferSource, what: string): Promise<WebAssembly.Module> {
  const { buffer = source as ArrayBuffer, byteOffset, byteLength } = source as Uint8Array;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  if (String(bytes.subarray(0, 4)) === MAGIC) return WebAssembly.compile(source);
  const start = new TextDecoder().decode(bytes.subarray(0, 64)).trimStart();
  throw new LoadError(
    start.startsWith("<")
      ? `${what} is an HTML page, as servers answer for missing files; ${ADVICE}`
      : `${what} is not WebAssembly; ${ADVICE}`,
  );
}

/** Advice if the page's Content-Security-Policy blocks WebAssembly. */
function policyHint(cause: unknown): string {
  return /content security policy|unsafe-eval/i.test(String(cause)) ? "; allow 'wasm-unsafe-eval' in script-src of the Content-Security-Policy" : "";
}

/** A module with nothing but the type of a function that returns a vector. */
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123];

/** Advice for a runtime that is too old. Called after compilation has failed. */
function simdHint(): string {
  return WebAssembly.validate(Uint8Array.from(SIMD)) ? "" : "; timepail needs SIMD, which browsers have since 2023";
}

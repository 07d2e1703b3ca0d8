// Explains why the WebAssembly module cannot be loaded.

import type { WasmSource } from "./types.js";

const ADVICE = "serve both .wasm files beside the package's JavaScript, or say where they are: open(name, { wasm, wasmMore })";

/** The first bytes of every module: NUL, "asm". */
const MAGIC = "0,97,115,109";

/** How far loading has come: what was given, the answer to the request, and the bytes that were to be compiled. */
export interface Failure {
  cause: unknown;
  given: WasmSource;
  response: Response | undefined;
  bytes: BufferSource | undefined;
}

/** The message for a module that cannot be loaded. It says what to do. */
export function loadFailure({ cause, given, response, bytes }: Failure): string {
  if (typeof WebAssembly === "undefined") return "This runtime has no WebAssembly, or it is disabled";
  if (!response && !bytes) return `${String(given)} cannot be fetched; ${ADVICE}`;
  const what = response ? response.url || "The answer given as `wasm`" : "The bytes given as `wasm`";
  if (response && !response.ok) return `${what} answered ${response.status}; ${ADVICE}`;
  const { buffer = bytes as ArrayBuffer, byteOffset, byteLength } = (bytes ?? {}) as Uint8Array;
  const start = new Uint8Array(buffer ?? 0, byteOffset, byteLength && Math.min(byteLength, 64));
  // Bytes that were compiled as they arrived are not here.
  if (bytes && String(start.subarray(0, 4)) !== MAGIC) {
    const isPage = new TextDecoder().decode(start).trimStart().startsWith("<");
    return `${what} is ${isPage ? "an HTML page, as servers answer for missing files" : "not WebAssembly"}; ${ADVICE}`;
  }
  return `timepail's WebAssembly module cannot be compiled: ${String(cause)}${policyHint(cause)}${simdHint()}`;
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

// Loading the module: every way that works, and the error if none does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadError } from "../src/errors.ts";
import { loadFailure } from "../src/load-failure.ts";
import { compileModule as compiled } from "../src/load.ts";
import type { WasmSource } from "../src/types.ts";

const compileModule = (source: WasmSource | Promise<WasmSource>): Promise<WebAssembly.Module> => compiled(source, loadFailure);

/** The smallest module. */
const WASM = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

function answer(body: BodyInit, type: string, status = 200): Response {
  return new Response(body, { status, headers: { "content-type": type } });
}

test("a module is compiled from every accepted source", async () => {
  const data = `data:application/wasm;base64,${Buffer.from(WASM).toString("base64")}`;
  const sources = [
    WASM, WASM.buffer, await WebAssembly.compile(WASM), answer(WASM, "application/wasm"), answer(WASM, "application/octet-stream"), data, new URL(data), Promise.resolve(WASM),
  ];
  for (const source of sources) assert.ok((await compileModule(source)) instanceof WebAssembly.Module);
});

test("an HTML page in place of the module is recognised", async () => {
  for (const type of ["text/html", "application/octet-stream"]) {
    await assert.rejects(compileModule(answer("\n<!doctype html><title>App</title>", type)), (error: unknown) => error instanceof LoadError && /HTML page.*serve both \.wasm files/.test(error.message));
  }
});

test("a missing module, an unreachable one and a damaged one each say so", async () => {
  await assert.rejects(compileModule(answer("", "text/plain", 404)), (error: unknown) => error instanceof LoadError && /404/.test(error.message));
  await assert.rejects(compileModule("http://127.0.0.1:9/timepail.wasm"), (error: unknown) => error instanceof LoadError && /cannot be fetched/.test(error.message) && error.cause !== undefined);
  await assert.rejects(compileModule(WASM.slice(0, 6)), (error: unknown) => error instanceof LoadError && /cannot be compiled/.test(error.message));
  await assert.rejects(compileModule(Uint8Array.of(1, 2)), (error: unknown) => error instanceof LoadError && /is not WebAssembly/.test(error.message));
  await assert.rejects(compileModule(answer("\0asm", "application/wasm")), LoadError);
});

test("a runtime without WebAssembly gets its own error", async () => {
  const before = globalThis.WebAssembly;
  try {
    (globalThis as { WebAssembly?: unknown }).WebAssembly = undefined;
    await assert.rejects(compileModule(WASM), (error: unknown) => error instanceof LoadError && /no WebAssembly/.test(error.message));
  } finally {
    globalThis.WebAssembly = before;
  }
});

test("a runtime whose WebAssembly lacks SIMD is told apart", async () => {
  const { compile, validate } = WebAssembly;
  const engine = WebAssembly as { compile: unknown; validate: unknown };
  try {
    engine.compile = () => Promise.reject(new WebAssembly.CompileError("invalid opcode 0xfd"));
    await assert.rejects(compileModule(WASM), (error: unknown) => error instanceof LoadError && /0xfd$/.test(error.message));
    // An old engine accepts the header of a module, and refuses the type of vectors.
    engine.validate = (bytes: Uint8Array<ArrayBuffer>) => validate(bytes) && !bytes.includes(0x7b);
    await assert.rejects(compileModule(WASM), (error: unknown) => error instanceof LoadError && /needs SIMD, which browsers have since 2023/.test(error.message));
  } finally {
    Object.assign(engine, { compile, validate });
  }
});

// Runtimes and bundlers that import WebAssembly as a module provide it compiled.

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

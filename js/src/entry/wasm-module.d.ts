// Runtimes and bundlers that take WebAssembly as modules give it compiled.

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

// What an import of `timepail/timepail.wasm` gives: whatever the bundler or runtime makes of it, which `open` takes.

import type { WasmSource } from "../types.js";

declare const source: WasmSource;
export default source;

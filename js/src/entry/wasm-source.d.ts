// The type of an import of `timepail/timepail.wasm`: whatever the bundler or runtime provides. `open` accepts it.

import type { WasmSource } from "../types.js";

declare const source: WasmSource;
export default source;

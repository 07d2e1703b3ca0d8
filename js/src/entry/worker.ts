// Both sides of engines in workers. In a dedicated worker it serves; a page imports it for its own side. It imports nothing, because import maps do not reach workers.

import { serve } from "../serve.js";

/** @internal */
export { openRemote } from "../client.js";

if ("DedicatedWorkerGlobalScope" in globalThis) serve(globalThis);

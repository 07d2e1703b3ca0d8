// Both sides of engines in workers: it serves in a dedicated worker, and a page imports its own side. The bundle imports nothing, because workers have no import maps.

import { serve } from "../serve.js";

/** @internal */
export { openRemote } from "../client.js";

if ("DedicatedWorkerGlobalScope" in globalThis) serve(globalThis);

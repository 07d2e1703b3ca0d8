// The worker's side of engines in the worker threads of Node, Bun and Deno.

import { isMainThread, parentPort } from "node:worker_threads";
import { serve } from "../serve.js";

// In Bun and Deno a worker may also be one of the web, which has no port.
if (parentPort) serve(parentPort as unknown as MessagePort);
else if (!isMainThread) serve(globalThis as unknown as MessagePort);

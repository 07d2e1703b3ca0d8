// Node 22.13 and later, Bun, Deno: node serve.mjs [file] [port]

import process from "node:process";
import { serve } from "timepail/server";

const server = await serve({ file: process.argv[2] ?? "plant.db", port: Number(process.argv[3] ?? 27017) });
console.log(`Listening on ${server.uri}`);
process.once("SIGTERM", () => server.close());

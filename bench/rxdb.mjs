// RxDB as a single bundle for a page.

import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));

/** Bundles it and resolves to the folder to serve as `/others/`. */
export async function bundleRxdb() {
  const folder = join(HERE, "results/others");
  const { build } = createRequire(join(HERE, "../js/package.json"))("esbuild");
  mkdirSync(folder, { recursive: true });
  await build({
    stdin: {
      contents: 'export { createRxDatabase } from "rxdb/plugins/core"; export { getRxStorageDexie } from "rxdb/plugins/storage-dexie";',
      resolveDir: HERE,
    },
    outfile: join(folder, "rxdb.js"),
    bundle: true,
    format: "esm",
    minify: true,
    define: { global: "globalThis" },
    logLevel: "warning",
  });
  return folder;
}

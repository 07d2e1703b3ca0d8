// Minifies bundles with Oxc, the minifier of Vite. Unlike esbuild's, it gives the same short names to variables of outer and inner functions wherever
// it can, so that gzip finds more repetitions.

import remapping from "@jridgewell/remapping";
import { minify } from "vite";
import { Stop } from "./steps.mjs";

const OPTIONS = { module: true, compress: { target: "es2022" }, mangle: { toplevel: true }, codegen: { removeWhitespace: true }, sourcemap: true };

/** Minifies a bundle whose source map is `map`. Resolves to the code, and to a map to the same sources. */
export async function minified(name, code, map) {
  const result = await minify(name, code, OPTIONS);
  if (result.errors.length > 0) throw new Stop(`${name} cannot be minified: ${result.errors.map(({ message }) => message).join("; ")}`);
  return { code: result.code, map: String(remapping([result.map, map], () => null)) };
}

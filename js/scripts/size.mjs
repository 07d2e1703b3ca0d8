// Prints the size of what a page downloads, and fails if it exceeds the budget in wasm-pack.toml.
//
//   node js/scripts/size.mjs [--brief]      --brief omits Brotli, which takes seconds, and files without a budget

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { compilerIn, readBuild } from "./builds.mjs";
import { DIST, Stop, filesUnder, main, toolEnv } from "./steps.mjs";

/** How far a module may exceed its budget if it was not built with the compiler of releases: another compiler inlines other functions. */
const OTHER_COMPILER = 1.01;

/** The sizes of files that are fetched, and therefore compressed, separately. */
export function sizesOf(files, isBrief = false) {
  const total = { raw: 0, gzip: 0, brotli: 0 };
  for (const file of files) {
    const bytes = readFileSync(file);
    total.raw += bytes.length;
    total.gzip += gzipSync(bytes, { level: 9 }).length;
    if (!isBrief) total.brotli += brotliCompressSync(bytes).length;
  }
  return total;
}

await main(async () => {
  const { budget, rust } = readBuild();
  const compiler = await compilerIn(await toolEnv("env"));
  const slack = compiler === rust ? 1 : OTHER_COMPILER;
  const isBrief = process.argv.includes("--brief");
  const [module, more] = ["timepail.wasm", "timepail-more.wasm"].map((name) => join(DIST, name));
  // The other files are entries of other runtimes, or are imported by name: a page does not fetch them with this one.
  const script = join(DIST, "index.js");
  const others = filesUnder(DIST).filter((file) => file.endsWith(".js") && file !== "index.js");
  if (!existsSync(module) || !existsSync(script)) throw new Stop("there is no package in js/dist; run make build");

  const number = (value) => value.toLocaleString("en-US").padStart(11);
  const kinds = ["raw", "gzip", ...(isBrief ? [] : ["brotli"])];
  console.log(`${"bytes".padEnd(6)}${[...kinds, "gzip budget"].map((name) => name.padStart(12)).join("")}`);
  const over = [];
  for (const [name, files, most] of [["wasm", [module], Math.floor(budget.wasm * slack)], ["more", [more], Math.floor(budget.more * slack)], ["js", [script], budget.js]]) {
    const sizes = sizesOf(files, isBrief);
    console.log(`${name.padEnd(6)} ${[...kinds.map((kind) => sizes[kind]), most].map(number).join(" ")}`);
    if (sizes.gzip > most) over.push(`${name} is ${sizes.gzip - most} bytes over its budget`);
  }
  if (slack > 1) console.log(`This is Rust ${compiler}. The budgets are for ${rust}, of releases, so the modules may be 1 % larger.`);
  if (!isBrief) console.log("\nother files, for who imports them");
  for (const file of isBrief ? [] : others) {
    const { raw, gzip, brotli } = sizesOf([join(DIST, file)]);
    console.log(`${file.padEnd(11)}${[raw, gzip, brotli].map(number).join(" ").slice(4)}`);
  }
  if (over.length > 0) throw new Stop(over.join("; "));
});

// Writes dist/timepail.tgz, the package as npm would publish it, and checks its content.
//
//   node js/scripts/pack.mjs --release   Also fails if the compiler is not the one that wasm-pack.toml pins.

import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compilerIn, readBuild } from "./builds.mjs";
import { named, shipped, withLinks } from "./manifest.mjs";
import { DIST, JS, ROOT, Stop, main, must, toolEnv } from "./steps.mjs";

const DOCUMENTS = ["CHANGELOG.md", "COMPAT.md", "README.md", "llms.txt", ...readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];
const ALWAYS = ["LICENSE", "package.json", ...DOCUMENTS];
const ALLOWED = /^(LICENSE|package\.json|[A-Z]+\.md|llms\.txt|docs\/[\w-]+\.md|dist\/timepail(-more)?\.wasm|dist\/THIRD-PARTY\.txt|dist\/[\w-]+\.js(\.map)?|dist\/([\w-]+\/)*[\w-]+\.d\.ts)$/;

/** Marks in the source and sizes are checked for one compiler only; with another, the build warns. */
async function checkCompiler() {
  const [compiler, { rust }] = [await compilerIn(await toolEnv("env")), readBuild()];
  if (compiler !== rust) throw new Stop(`releases are built with Rust ${rust} (wasm-pack.toml), and this is ${compiler}`);
}

await main(async () => {
  if (process.argv.includes("--release")) await checkCompiler();
  const out = join(ROOT, "dist");
  const stage = join(out, "package");
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });

  if (!existsSync(join(DIST, "index.js"))) throw new Stop("there is no package in js/dist; run make build");
  cpSync(DIST, join(stage, "dist"), { recursive: true });
  cpSync(join(ROOT, "LICENSE"), join(stage, "LICENSE"));
  for (const file of DOCUMENTS) {
    mkdirSync(dirname(join(stage, file)), { recursive: true });
    writeFileSync(join(stage, file), withLinks(file, readFileSync(join(ROOT, file), "utf8"), DOCUMENTS));
  }
  const manifest = shipped(JSON.parse(readFileSync(join(JS, "package.json"), "utf8")));
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);

  const quiet = ["--loglevel", "error"];
  const [packed] = JSON.parse(await must("npm", ["pack", "--json", "--pack-destination", out, ...quiet], { cwd: stage, show: "stderr" }));
  const files = packed.files.map((file) => file.path);
  const missing = [...ALWAYS, ...named(manifest.exports), ...named(manifest.bin)].filter((file) => !files.includes(file));
  const foreign = files.filter((file) => !ALLOWED.test(file));
  if (missing.length > 0) throw new Stop(`the package lacks ${missing.join(", ")}`);
  if (foreign.length > 0) throw new Stop(`the package holds what does not belong there: ${foreign.join(", ")}`);
  renameSync(join(out, packed.filename), join(out, "timepail.tgz"));
  console.log(`dist/timepail.tgz: ${files.length} files, ${statSync(join(out, "timepail.tgz")).size.toLocaleString("en-US")} bytes`);
});

// Writes dist/timepail.tgz, the package as npm would publish it, and checks what is in it.

import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { named, shipped } from "./manifest.mjs";
import { DIST, JS, ROOT, Stop, main, must } from "./steps.mjs";

const ALWAYS = ["LICENSE", "README.md", "package.json"];
const ALLOWED = /^(LICENSE|README\.md|package\.json|dist\/timepail(-more)?\.wasm|dist\/[\w-]+\.js(\.map)?|dist\/([\w-]+\/)*[\w-]+\.d\.ts)$/;

await main(async () => {
  const out = join(ROOT, "dist");
  const stage = join(out, "package");
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });

  if (!existsSync(join(DIST, "index.js"))) throw new Stop("there is no package in js/dist; run make build");
  cpSync(DIST, join(stage, "dist"), { recursive: true });
  for (const file of ["LICENSE", "README.md"]) {
    if (!existsSync(join(ROOT, file))) throw new Stop(`${file} is missing; a package needs it`);
    cpSync(join(ROOT, file), join(stage, file));
  }
  const manifest = shipped(JSON.parse(readFileSync(join(JS, "package.json"), "utf8")));
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);

  const quiet = ["--loglevel", "error"];
  const [packed] = JSON.parse(await must("npm", ["pack", "--json", "--pack-destination", out, ...quiet], { cwd: stage, show: "stderr" }));
  const files = packed.files.map((file) => file.path);
  const missing = [...ALWAYS, ...named(manifest.exports)].filter((file) => !files.includes(file));
  const foreign = files.filter((file) => !ALLOWED.test(file));
  if (missing.length > 0) throw new Stop(`the package lacks ${missing.join(", ")}`);
  if (foreign.length > 0) throw new Stop(`the package holds what does not belong there: ${foreign.join(", ")}`);
  renameSync(join(out, packed.filename), join(out, "timepail.tgz"));
  console.log(`dist/timepail.tgz: ${files.length} files, ${statSync(join(out, "timepail.tgz")).size.toLocaleString("en-US")} bytes`);
});

// Reads wasm-pack.toml, the table of builds, and checks that other files agree with it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { ROOT, Stop, must } from "./steps.mjs";

const KEYS = ["target", "features", "cargo", "rustc", "whole", "wasm-opt", "budget"];

/** `{ rust, bindgen, target, features, cargo, rustc, whole, opt, budget: { wasm, js } }` of the default build; throws if a file contradicts it. */
export function readBuild() {
  const read = (file) => parse(readFileSync(join(ROOT, file), "utf8"));
  return checkedBuild(read("wasm-pack.toml"), read("Cargo.lock"), read("Cargo.toml"));
}

/** The version of the compiler in `env`. */
export const compilerIn = async (env) => (await must("rustc", ["--version"], { env })).split(" ")[1];

/** `readBuild` from parsed files. */
export function checkedBuild(table, lock, cargo) {
  const bindgen = table.tools?.["wasm-bindgen"];
  const locked = lock.package.filter((entry) => entry.name === "wasm-bindgen").map((entry) => entry.version);
  if (locked.length !== 1 || locked[0] !== bindgen)
    throw new Stop(`wasm-pack.toml pins wasm-bindgen ${bindgen}, Cargo.lock has ${locked.join(" and ") || "none"}; they must be equal`);

  const rust = table.tools.rust;
  if (!/^\d+\.\d+\.\d+$/.test(rust)) throw new Stop(`wasm-pack.toml pins the compiler "${rust}", which is no version`);
  const build = table.build?.default;
  if (!build) throw new Stop("wasm-pack.toml has no [build.default]");
  for (const key of Object.keys(build)) if (!KEYS.includes(key)) throw new Stop(`wasm-pack.toml: build.default.${key} means nothing here`);
  if (build.target !== "web") throw new Stop(`wasm-pack.toml: target "${build.target}" is not supported; the package is made of the web target`);

  const opt = build["wasm-opt"];
  for (const flag of opt)
    if (/^(-all|--all-features|--(en|dis)able-.*)$/.test(flag))
      throw new Stop(`wasm-pack.toml: ${flag} overrides the module's own feature list, and browsers may then refuse the module`);
  const byHand = cargo.package.metadata?.["wasm-pack"]?.profile?.release?.["wasm-opt"] ?? [];
  for (const flag of opt)
    if (!byHand.includes(flag)) throw new Stop(`wasm-pack.toml has wasm-opt flag ${flag}, [package.metadata.wasm-pack] in Cargo.toml lacks it`);

  const budget = { wasm: build.budget?.["wasm-gzip"], more: build.budget?.["more-gzip"], js: build.budget?.["js-gzip"] };
  if (!Object.values(budget).every((most) => most > 0)) throw new Stop("wasm-pack.toml: build.default.budget needs wasm-gzip, more-gzip and js-gzip");
  return { rust, bindgen, target: build.target, features: build.features, cargo: build.cargo ?? [], rustc: build.rustc ?? [], whole: build.whole ?? [], opt, budget };
}

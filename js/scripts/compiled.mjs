// Compiled dependencies stay with the tools, so that another clone need not compile them: they take two thirds as long as the crate itself. Cargo checks each of
// them as if this clone had compiled it. The crates of this repository are never kept.

import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { arch, platform } from "node:os";
import { basename, dirname, join } from "node:path";
import { ROOT, TOOLS, hashOf, must } from "./steps.mjs";

/** What cargo needs of a folder of one profile. */
const PARTS = [".fingerprint", "build", "deps"];
/** How long a set of dependencies is kept when no clone asks for it. */
const KEPT_MS = 30 * 24 * 3_600_000;

/** The names that the packages and test programs of this repository have in `target`. */
const own = () => new Set(["timepail", "timepail-kernels", "timepail_kernels", ...readdirSync(join(ROOT, "tests")).map((name) => basename(name, ".rs"))]);

/** The name in front of the hash, as in `libserde-0123456789abcdef.rlib`. */
const nameOf = (file) => file.replace(/^lib/, "").replace(/-[0-9a-f]{16}(\..*)?$/, "");

/** True if a file has been compiled from this repository. The crate's module has no hash in its name. */
const isOwn = (file, names) => names.has(nameOf(file)) || /^(lib)?timepail\b/.test(file);

/** The folder that keeps the dependencies for the lock file, the profiles, the compiler and its flags. */
async function keptFolder(tools, env, name, flags) {
  const compiler = await must("rustc", ["-vV"], { env });
  const files = ["Cargo.lock", "Cargo.toml", "kernels/Cargo.toml"].map((file) => join(ROOT, file));
  const set = Object.entries(env).filter(([name]) => /^(CARGO_PROFILE_|CARGO_ENCODED_RUSTFLAGS$|RUSTFLAGS$)/.test(name)).map(String).sort();
  return join(tools, `compiled-${name}-${hashOf(files, ...flags, ...set, compiler, platform(), arch()).slice(0, 12)}`);
}

/** Copies a folder with its modification times, which tell cargo what is fresh. Leaves out the names for which `isLeft` is true. */
function copy(from, to, isLeft = () => false) {
  cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter: (source) => source === from || !isLeft(basename(source)) });
}

/**
 * Calls `work`, which compiles with cargo in `env` and with `flags`, and resolves to its result. `profiles` are folders below `target`. If none of them exists,
 * the kept dependencies are copied there first. If none are kept yet, those of this clone are kept afterwards.
 */
export async function withDependencies(name, env, profiles, work, { flags = [], tools = TOOLS, target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target") } = {}) {
  if (profiles.some((profile) => existsSync(join(target, profile)))) return work();
  const kept = await keptFolder(tools, env, name, flags);
  const isKept = existsSync(kept);
  if (isKept) bring(kept, target, profiles);
  const result = await work();
  // `run` resolves to an exit code, which tells whether everything was compiled. `must` throws if it was not.
  if (!isKept && (result?.code ?? 0) === 0) keep(kept, target, profiles);
  dropOld(tools);
  return result;
}

/** Moves each profile into place when it is complete, because cargo would take a partial library for a complete one. */
function bring(kept, target, profiles) {
  const folder = join(target, `brought-${process.pid}`);
  copy(kept, folder);
  for (const profile of profiles.filter((profile) => existsSync(join(folder, profile)))) {
    mkdirSync(dirname(join(target, profile)), { recursive: true });
    renameSync(join(folder, profile), join(target, profile));
  }
  rmSync(folder, { recursive: true, force: true });
  utimesSync(kept, new Date(), new Date());
}

function keep(kept, target, profiles) {
  const folder = `${kept}.${process.pid}`;
  const names = own();
  for (const profile of profiles) {
    for (const part of PARTS) {
      const from = join(target, profile, part);
      if (existsSync(from)) copy(from, join(folder, profile, part), (file) => isOwn(file, names));
    }
  }
  // Renamed when it is complete, so that another clone finds all of it or nothing.
  if (!existsSync(folder)) return;
  try {
    renameSync(folder, kept);
  } catch {
    // Another clone was faster.
    rmSync(folder, { recursive: true, force: true });
  }
}

function dropOld(tools) {
  if (!existsSync(tools)) return;
  for (const other of readdirSync(tools).filter((file) => file.startsWith("compiled-"))) {
    const path = join(tools, other);
    // Another run may have renamed it.
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}

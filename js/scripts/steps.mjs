// Shared by the scripts in this folder: paths, running a program, and skipping work that is already done.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const JS = dirname(dirname(fileURLToPath(import.meta.url)));
export const ROOT = dirname(JS);
export const DIST = join(JS, "dist");
export const WASM = join(JS, "src/wasm");
export const TOOLS = process.env.TIMEPAIL_TOOLS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "timepail");

/** An expected failure. Its message says all that you need, so no stack is printed. */
export class Stop extends Error {}

/** Runs a script's main function. If it throws, the error is printed and the exit code is 1. */
export async function main(work) {
  try {
    await work();
  } catch (error) {
    console.error(error instanceof Stop ? `error: ${error.message}` : error);
    process.exitCode = 1;
  }
}

/**
 * Runs a program and resolves to `{ code, output }`, whatever the code. `output` is stdout and stderr in order of arrival.
 * `show: "stderr"` passes stderr on to the terminal instead, for programs that show their own progress. After `timeout`
 * milliseconds the program is killed.
 */
export function run(command, args, { cwd = ROOT, env = process.env, show = "nothing", timeout } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", show === "stderr" ? "inherit" : "pipe"], timeout, killSignal: "SIGKILL" });
    const parts = [];
    child.stdout.on("data", (part) => parts.push(part));
    child.stderr?.on("data", (part) => parts.push(part));
    const end = (code, note = "") => resolve({ code, output: Buffer.concat(parts).toString() + note });
    child.on("error", (error) => end(127, `${command}: ${error.message}\n`));
    child.on("close", (code, signal) => end(code ?? 128, signal ? `${command} was ended by ${signal}\n` : ""));
  });
}

/** Like `run`, but throws if the program fails. Resolves to the output. */
export async function must(command, args, options) {
  const { code, output } = await run(command, args, options);
  if (code !== 0) throw new Stop(`${[command, ...args].join(" ")} failed (exit ${code})\n${output}`);
  return output;
}

/** The program `name` of an npm package that the build depends on. */
export const bin = (name) => join(JS, "node_modules/.bin", name);

/** The environment in which cargo compiles for wasm, or the one in which browsers are found. */
export async function toolEnv(file) {
  const path = join(TOOLS, file);
  if (!existsSync(path)) throw new Stop(`${path} is missing; js/scripts/toolchain.sh writes it (make tools, make browser)`);
  const output = await must("bash", ["-c", '. "$1" && env -0', "bash", path]);
  const pairs = output.split("\0").filter((pair) => pair.includes("="));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

export const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/** Announces a step, does it, and says how long it took. */
export async function step(name, work) {
  const start = performance.now();
  console.log(`${name} ...`);
  const result = await work();
  console.log(`${name}: ${seconds(start)}`);
  return result;
}

/** Every file under `folder`, relative to it, sorted; a folder that does not exist has none. */
export function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return found.map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name))).sort();
}

/** One hash over files (path and content) and plain texts; a file that is not there counts as empty. */
export function hashOf(files, ...texts) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${relative(ROOT, file)}\0`).update(existsSync(file) ? readFileSync(file) : "").update("\0");
  for (const text of texts) hash.update(`${text}\0`);
  return hash.digest("hex");
}

/**
 * Does `work`, unless it was done before with the same `inputs` hash and its outputs have not changed since.
 * `work` resolves to the list of files that it wrote.
 */
export async function once(name, inputs, work) {
  const stampFile = join(ROOT, "target/stamps", `${name.replaceAll(/\W+/g, "-")}.json`);
  if (existsSync(stampFile)) {
    const stamp = JSON.parse(readFileSync(stampFile, "utf8"));
    if (stamp.inputs === inputs && stamp.outputs === hashOf(stamp.files)) return console.log(`${name}: unchanged`);
  }
  const files = await step(name, work);
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, JSON.stringify({ inputs, files, outputs: hashOf(files) }));
}

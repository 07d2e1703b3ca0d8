// The tests in Node 24, Deno, Bun and workerd: the real runtimes, from npm, with the package installed as users install it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build as esbuild } from "esbuild";
import { shipped } from "./manifest.mjs";
import { DIST, JS, ROOT, Stop, run } from "./steps.mjs";

/** Outside the folder js, because Bun would follow its tsconfig.json, which maps the package to its source. */
const OUT = join(ROOT, "target/runtimes");
const PHASE_MS = 300_000;
const END_MS = 30_000;
const WRITERS = 3;
const ALARM_MS = 30_000;

/**
 * The path of a runtime's program. Each platform has a package of its own, and npm has installed the one that fits. The packages that choose among all platforms
 * are not used: they name packages that not every registry has, and `npm ci` requires all of them.
 */
function program(scope, name, file) {
  const folder = join(JS, "node_modules", scope);
  const found = existsSync(folder) ? readdirSync(folder).filter((entry) => entry.startsWith(name)).map((entry) => join(folder, entry, file)) : [];
  const path = found.find((candidate) => existsSync(candidate));
  if (!path) throw new Stop(`there is no ${join(scope, name)}*/${file} in js/node_modules; run npm ci in js; there are some for Linux only`);
  return path;
}

export const node24 = () => (Number(process.versions.node.split(".")[0]) >= 24 ? process.execPath : program("", "node-linux-", "bin/node"));
export const deno = () => [program("@deno", "", "deno"), "run", "--quiet", "--no-lock", "--no-prompt", "--node-modules-dir=manual", "--unstable-kv", "-A"];
export const bun = () => program("@oven", "bun-", "bin/bun");
export const workerd = () => program("@cloudflare", "workerd-", "bin/workerd");

/** The test file and program of each target. */
const TARGETS = {
  "node:sqlite in Node": ["node-sqlite", () => [node24(), "--no-warnings"]],
  "node:sqlite in Deno": ["node-sqlite", deno],
  "Deno KV": ["deno-kv", deno],
  "bun:sqlite": ["bun-sqlite", () => [bun()]],
};

/** Creates a folder with the package and its dependencies in node_modules. */
export function installed(folder) {
  const own = join(folder, "node_modules/timepail");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), JSON.stringify(shipped(JSON.parse(readFileSync(join(JS, "package.json"), "utf8")))));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", dependencies: { timepail: "*", bson: "*" } }));
  cpSync(DIST, join(own, "dist"), { recursive: true });
  cpSync(join(JS, "node_modules/bson"), join(folder, "node_modules/bson"), { recursive: true });
}

/** Bundles a test with its relative imports; packages stay imports. */
async function bundled(name) {
  const outfile = join(OUT, `${name}.mjs`);
  await esbuild({
    entryPoints: [join(JS, `test/runtimes/${name}.ts`)],
    outfile,
    bundle: true,
    format: "esm",
    platform: "neutral",
    target: "es2022",
    external: ["timepail", "timepail/*", "bson", "node:*", "bun:*"],
    logLevel: "silent",
  });
  return outfile;
}

/** Bundles a Worker as the tools for Workers do: everything in one file, except the WebAssembly modules beside it. */
export async function bundledWorker(entry, folder) {
  const outfile = join(folder, "worker.js");
  const modules = new Map();
  const wasm = {
    name: "wasm",
    setup: (build) =>
      build.onResolve({ filter: /\.wasm$/ }, async ({ path, resolveDir, kind, pluginData }) => {
        if (pluginData === wasm) return undefined;
        const file = path.startsWith(".") ? join(resolveDir, path) : (await build.resolve(path, { resolveDir, kind, pluginData: wasm })).path;
        modules.set(file.split("/").at(-1), file);
        return { path: `./${file.split("/").at(-1)}`, external: true };
      }),
  };
  await esbuild({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    external: ["cloudflare:*"],
    nodePaths: [join(OUT, "node_modules")],
    tsconfigRaw: {},
    plugins: [wasm],
    logLevel: "silent",
  });
  return { outfile, modules };
}

/**
 * Starts workerd with a Worker whose Durable Objects, `{ binding: class }`, keep their SQLite files in `folder`; `texts` are further
 * bindings. Resolves to its address and a function that kills it.
 */
export async function serveWorker({ outfile, modules }, folder, classes, texts = {}) {
  mkdirSync(join(folder, "objects"), { recursive: true });
  const text = JSON.stringify;
  const embedded = [...modules].map(([name, path]) => `(name = ${text(name)}, wasm = embed ${text(relativeTo(folder, path))})`);
  const bindings = [
    ...Object.entries(classes).map(([name, of]) => `(name = ${text(name)}, durableObjectNamespace = ${text(of)})`),
    ...Object.entries(texts).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`),
  ];
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .w), (name = "disk", disk = (path = ${text(join(folder, "objects"))}, writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const w :Workerd.Worker = (
  compatibilityDate = "2026-01-01",
  modules = [(name = "worker.js", esModule = embed ${text(relativeTo(folder, outfile))}), ${embedded.join(", ")}],
  bindings = [${bindings.join(", ")}],
  durableObjectNamespaces = [${Object.values(classes).map((name) => `(className = ${text(name)}, uniqueKey = ${text(name)}, enableSql = true)`).join(", ")}],
  durableObjectStorage = (localDisk = "disk")
);
`;
  const file = join(folder, "config.capnp");
  writeFileSync(file, config);
  const child = spawn(workerd(), ["serve", "--control-fd=3", file], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (output += part));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const port = await new Promise((resolve, reject) => {
    let said = "";
    child.stdio[3].on("data", (part) => {
      const port = /"port":\s*(\d+)/.exec((said += part))?.[1];
      if (port) resolve(port);
    });
    ended.then(() => reject(new Stop(`workerd has ended\n${output}`)));
  });
  const kill = () => {
    child.kill("SIGKILL");
    return ended;
  };
  return { address: `http://127.0.0.1:${port}`, kill, output: () => output };
}

/** capnp embeds files by their path from the file that names them. */
function relativeTo(folder, path) {
  const up = folder.split("/").filter(Boolean).map(() => "..").join("/");
  return `${up}${path}`;
}

/** Adds the lines of a phase to `result`. */
function count(result, target, phase, { code, output }, isKilled) {
  const passed = output.match(/^ok /gm)?.length ?? 0;
  const failed = output.match(/^not ok /gm)?.length ?? 0;
  const isBad = passed + failed === 0 || (code !== 0 && !isKilled);
  result.passed += passed;
  result.failed += failed + (failed === 0 && isBad ? 1 : 0);
  if (failed > 0 || isBad) result.output += `--- ${target}, ${phase} (exit ${code})\n${output}\n`;
  return failed === 0 && !isBad;
}

async function inProcesses(result, target, [name, command]) {
  const file = await bundled(name);
  const state = join(OUT, "state", target.replaceAll(/\W+/g, "-"));
  mkdirSync(state, { recursive: true });
  const phase = async (...args) => {
    const [path, ...flags] = command();
    // Every phase except `left` ends by killing its own process.
    const ends = args[0] === "left";
    const limit = { cwd: OUT, env: { ...process.env, STATE: state }, timeout: ends ? END_MS : PHASE_MS };
    count(result, target, args.join(" "), await run(path, [...flags, file, ...args], limit), !ends);
  };
  for (const name of ["contract", "before", "after", "left"]) await phase(name);
  await Promise.all(Array.from({ length: WRITERS }, (_, i) => phase("writer", String(i))));
  await phase("counted", String(WRITERS));
}

/** Engines in worker threads. */
async function inThreads(result) {
  const file = await bundled("threads");
  for (const [name, command] of Object.entries({ Node: () => [node24(), "--no-warnings"], Deno: deno, Bun: () => [bun()] })) {
    const [path, ...flags] = command();
    for (const args of [[], ["left"]]) count(result, `threads in ${name}`, args.join(), await run(path, [...flags, file, ...args], { cwd: OUT, timeout: PHASE_MS }), false);
  }
}

async function inWorkerd(result) {
  const folder = join(OUT, "worker");
  mkdirSync(folder, { recursive: true });
  const built = await bundledWorker(join(JS, "test/runtimes/worker.ts"), folder);
  for (const phases of [["contract", "before"], ["after"]]) {
    const server = await serveWorker(built, folder, { TESTS: "Tests" });
    try {
      for (const phase of phases) {
        const answer = await fetch(`${server.address}/${phase}`);
        const output = await answer.text();
        count(result, "Durable Object", phase, { code: answer.ok ? 0 : answer.status, output: answer.ok ? output : output + server.output() });
      }
    } finally {
      await server.kill();
    }
  }
}

/** Runs each example twice on one file: the second run finds the data of the first. */
async function examples(result) {
  const folder = join(OUT, "examples");
  cpSync(join(JS, "examples/runtimes"), folder, { recursive: true });
  const commands = { node: [node24(), "--no-warnings"], bun: [bun()], deno: deno() };
  const all = Object.entries(commands).flatMap(([name, command]) => [[name, name, command], [`file in ${name}`, "file", command]]);
  for (const [name, source, [path, ...flags]] of all) {
    for (const wanted of ["1 readings of roof, 20 degrees", "2 readings of roof, 20.5 degrees"]) {
      const { code, output } = await run(path, [...flags, join(folder, `${source}.mjs`), join(folder, `${name}.db`)], { cwd: folder, timeout: PHASE_MS });
      const isRight = code === 0 && output.startsWith(wanted);
      count(result, "examples", name, { code, output: isRight ? `ok ${name}\n` : `not ok ${name}\n${output}` });
    }
  }
}

/** js/examples/worker in workerd: it stores data and answers queries; after a kill it gives the same answers; its alarms remove old data. */
async function exampleWorker(result) {
  const folder = join(OUT, "example-worker");
  mkdirSync(folder, { recursive: true });
  const built = await bundledWorker(join(JS, "examples/worker/worker.js"), folder);
  const start = (texts) => serveWorker(built, folder, { SHARD: "Shard" }, texts);
  const hour = 3_600_000;
  const now = Math.floor(Date.now() / hour) * hour;
  const names = Array.from({ length: 12 }, (_, i) => `series-${i}`);
  const rows = (from) => names.flatMap((series, s) => Array.from({ length: 60 }, (_, i) => ({ series, at: from + i * 60_000, temp: s + i / 60 })));
  const test = async (name, work) => {
    const error = await work().then(() => undefined, (error) => error);
    count(result, "example Worker", name, { code: 0, output: error ? `not ok ${name}\n${error.stack}\n` : `ok ${name}\n` });
  };
  const json = async (server, path, init) => {
    const answer = await fetch(`${server.address}${path}`, init);
    return answer.ok ? answer.json() : { status: answer.status, text: await answer.text() };
  };
  const post = (server, body) => json(server, "/ingest", { method: "POST", body: JSON.stringify(body) });
  const asked = `/query?series=series-3&from=${now - hour}&to=${now + hour}&every=${hour}`;
  const found = [{ count: 60, avg: 3 + 59 / 120, min: 3, max: 3 + 59 / 60, at: now }];
  const totals = async (server) => (await json(server, "/stats")).reduce((sum, { series, readings, alarms }) => [sum[0] + series, sum[1] + readings, sum[2] + (alarms > 0)], [0, 0, 0]);
  let server = await start({});
  try {
    await test("stores measurements, spread over shards", async () => {
      assert.deepEqual(await post(server, [...rows(now - 240 * hour), ...rows(now)]), { stored: 1440 });
      assert.deepEqual(await totals(server), [12, 1440, 0]);
      assert.ok((await json(server, "/stats")).every(({ series }) => series > 0));
    });
    await test("answers a query from one shard", async () => assert.deepEqual(await json(server, asked), found));
    await test("says what is wrong with a request", async () => {
      assert.equal((await post(server, [{ series: "a" }])).status, 400);
      assert.equal((await json(server, "/query?series=a")).status, 400);
      assert.equal((await json(server, "/other")).status, 404);
    });
    await server.kill();
    server = await start({ KEEP_SECONDS: "7200", RETENTION_EVERY_MS: "1" });
    await test("has everything after it was killed and restarted", async () => {
      assert.deepEqual(await totals(server).then(([series]) => series), 12);
      assert.deepEqual(await json(server, asked), found);
    });
    await test("removes expired measurements on its alarm", async () => {
      // Insert one more reading per series, so that every shard sets an alarm after the restart. The loop awaits each answer, so nothing sleeps.
      assert.deepEqual(await post(server, names.map((series) => ({ series, at: now + hour / 2, temp: 0 }))), { stored: 12 });
      let seen;
      for (const end = Date.now() + ALARM_MS; Date.now() < end && `${seen}` !== "12,732,4"; ) seen = await totals(server);
      assert.deepEqual(seen, [12, 732, 4]);
    });
  } finally {
    await server.kill();
  }
}

/** The stage `runtimes` of js/scripts/test.mjs. With `only`, just the targets whose names begin with it. */
export async function runtimes(only = "") {
  const result = { passed: 0, failed: 0, output: "" };
  installed(OUT);
  const targets = [...Object.entries(TARGETS).map(([name, target]) => [name, () => inProcesses(result, name, target)]), ["threads", () => inThreads(result)], ["workerd", () => inWorkerd(result)], ["examples", () => examples(result)], ["example Worker", () => exampleWorker(result)]];
  for (const [name, work] of targets) {
    if (!name.toLowerCase().startsWith(only.toLowerCase())) continue;
    const before = { ...result };
    try {
      await work();
    } catch (error) {
      result.failed++;
      result.output += `--- ${name}\n${error instanceof Stop ? error.message : error.stack}\n`;
    }
    console.log(`  ${name}: ${result.passed - before.passed} passed, ${result.failed - before.failed} failed`);
  }
  return result;
}

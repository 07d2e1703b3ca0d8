// A small project for each bundler, and one without, with the package as npm installs it: built, and run in Chromium.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { build as esbuild } from "esbuild";
import { rollup } from "rollup";
import { build as vite, createServer } from "vite";
import webpack from "webpack";
import { launchChromium } from "../../scripts/chromium.mjs";
import { serve } from "../../scripts/serve.mjs";

const JS = process.cwd();
let project;
let server;
let browser;

const PAGE = (script) => `<!doctype html><meta charset="utf-8"><title>bundled</title>${script}\n`;
const MODULE = PAGE('<script type="module" src="./main.js"></script>');

/** Both halves of the module are needed: an aggregation is in the second. With `?worker` in the address, the engine is in a worker, with `?own` in one of the project. */
const MAIN = `import { open } from "timepail";

async function main() {
  const own = () => new Worker(new URL("./own.js", import.meta.url), { type: "module" });
  const db = await open("bundled", { worker: { "?worker": true, "?own": own }[location.search] });
  const c = await db.createCollection("c" + location.pathname + location.search, { timeseries: { timeField: "at", metaField: "m" } });
  await c.insertMany(Array.from({ length: 10 }, (_, i) => ({ at: new Date(i), m: i % 2, v: i })));
  // What computes live queries is a file of its own.
  for await (const [row] of c.find({ v: 7 }).live()) {
    if (row.m !== 1) return "another result of the live query";
    break;
  }
  const groups = await c.aggregate([{ $group: { _id: "$m", v: { $sum: "$v" } } }, { $sort: { _id: 1 } }]).toArray();
  await db.close();
  return JSON.stringify(groups);
}

main().then((result) => (globalThis.result = result), (error) => (globalThis.result = String(error)));
`;

before(async () => {
  execFileSync(process.execPath, [join(JS, "scripts/pack.mjs")], { stdio: "pipe" });
  project = mkdtempSync(join(tmpdir(), "timepail-bundlers-"));
  mkdirSync(join(project, "node_modules/timepail"), { recursive: true });
  execFileSync("tar", ["-xzf", join(JS, "../dist/timepail.tgz"), "--strip-components=1", "-C", join(project, "node_modules/timepail")]);
  cpSync(join(JS, "node_modules/bson"), join(project, "node_modules/bson"), { recursive: true });
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module", dependencies: { timepail: "*" } }));
  write("main.js", MAIN);
  write("own.js", 'import "timepail/worker";\n');
  server = await serve({ port: 0, root: join(project, "out"), more: { "/packages/": join(project, "node_modules") } });
  browser = await launchChromium(join(project, "profile"));
});

after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(project, { recursive: true, force: true });
});

function write(file, text) {
  mkdirSync(dirname(join(project, file)), { recursive: true });
  writeFileSync(join(project, file), text);
}

/** With esbuild and Rollup, users copy the modules and the worker beside the bundle, where its code expects them. */
function copyFiles(folder) {
  for (const name of ["timepail.wasm", "timepail-more.wasm", "worker.js"]) cpSync(join(project, "node_modules/timepail/dist", name), join(project, folder, name));
}

/** Asserts that the page of `folder`, or at another address, stores and reads with both halves, and again with the engine in a worker. */
async function works(folder, { searches = ["", "?worker"], url = `${server.url}/${folder}/index.html` } = {}) {
  for (const search of searches) {
    const { result, errors, workers } = await visited(url + search);
    assert.deepEqual([search, result, errors], [search, '[{"_id":0,"v":20},{"_id":1,"v":25}]', []]);
    assert.equal(workers, search ? 1 : 0);
  }
}

/** The addresses to test with bundlers that support workers. */
const WITH_OWN = ["", "?worker", "?own"];

/** The result of a page, its errors, and the number of workers that it has started. */
async function visited(url) {
  const page = await browser.newPage();
  const errors = [];
  let workers = 0;
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("worker", () => workers++);
  await page.goto(url);
  const result = await page.waitForFunction(() => globalThis.result, undefined, { timeout: 30_000 }).then((handle) => handle.jsonValue());
  await page.close();
  return { result, errors, workers };
}

test("Vite", async () => {
  write("index.html", MODULE);
  await vite({ root: project, base: "./", logLevel: "error", configFile: false, build: { outDir: "out/vite" } });
  assert.equal(readdirSync(join(project, "out/vite/assets")).filter((name) => name.endsWith(".wasm")).length, 2);
  await works("vite", { searches: WITH_OWN });
});

test("Vite 8 while developing, without a setting", async () => {
  write("index.html", MODULE);
  const config = { root: project, logLevel: "error", configFile: false, cacheDir: join(project, "vite-cache") };
  const development = await createServer({ ...config, server: { host: "127.0.0.1", port: 0 } });
  await development.listen();
  try {
    await works("vite", { searches: WITH_OWN, url: `http://127.0.0.1:${development.httpServer.address().port}/` });
  } finally {
    await development.close();
  }
});

test("webpack 5", async () => {
  const stats = await new Promise((resolve, reject) => {
    const config = { mode: "production", context: project, entry: "./main.js", output: { path: join(project, "out/webpack"), filename: "main.js" } };
    webpack(config, (error, stats) => (error ? reject(error) : resolve(stats)));
  });
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  // webpack warns about files of more than 244 KB, such as the module.
  assert.deepEqual([errors, warnings.filter(({ message }) => !/size limit|code splitting|performance/i.test(message))], [[], []]);
  write("out/webpack/index.html", PAGE('<script src="./main.js"></script>'));
  await works("webpack", { searches: WITH_OWN });
});

test("esbuild", async () => {
  await esbuild({ entryPoints: [join(project, "main.js")], outfile: join(project, "out/esbuild/main.js"), bundle: true, format: "esm", minify: true, logLevel: "silent" });
  copyFiles("out/esbuild");
  write("out/esbuild/index.html", MODULE);
  await works("esbuild");
});

test("esbuild, with the modules as files of its own", async () => {
  const given = MAIN.replace('"?worker": true', '"?worker": "./assets/worker.js"').replace("[location.search]", "$&, wasm, wasmMore");
  const contents = `import wasm from "timepail/timepail.wasm"; import wasmMore from "timepail/timepail-more.wasm";\n${given}`;
  const options = { bundle: true, format: "esm", loader: { ".wasm": "file" }, publicPath: ".", logLevel: "silent" };
  await esbuild({ ...options, stdin: { contents, resolveDir: project }, outfile: join(project, "out/files/main.js") });
  cpSync(join(project, "node_modules/timepail/dist/worker.js"), join(project, "out/files/assets/worker.js"));
  write("out/files/index.html", MODULE);
  await works("files");
});

test("Rollup", async () => {
  const bundle = await rollup({ input: join(project, "main.js"), plugins: [nodeResolve({ browser: true })], onwarn: (warning) => assert.fail(warning.message) });
  await bundle.write({ dir: join(project, "out/rollup"), format: "es" });
  await bundle.close();
  copyFiles("out/rollup");
  write("out/rollup/index.html", MODULE);
  await works("rollup");
});

test("no bundler: a script of type module", async () => {
  const imports = { timepail: "/packages/timepail/dist/index.js", bson: "/packages/bson/lib/bson.mjs" };
  write("out/plain/main.js", MAIN);
  write("out/plain/index.html", PAGE(`<script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="./main.js"></script>`));
  await works("plain");
});

test("a bundle without the modules beside it says what to do", async () => {
  await esbuild({ entryPoints: [join(project, "main.js")], outfile: join(project, "out/missing/main.js"), bundle: true, format: "esm", logLevel: "silent" });
  write("out/missing/index.html", MODULE);
  assert.match((await visited(`${server.url}/missing/index.html`)).result, /LoadError.*timepail\.wasm answered 404; serve both \.wasm files beside/);
  assert.match((await visited(`${server.url}/missing/index.html?worker`)).result, /WorkerError.*worker\.js cannot be loaded; serve the files of the package beside/);
});

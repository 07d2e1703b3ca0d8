// The package as npm would publish it: files, manifest, and package linters.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { buildSync } from "esbuild";
import { shipped, withLinks } from "../scripts/manifest.mjs";

const JS = process.cwd();
const TARBALL = join(JS, "../dist/timepail.tgz");
let folder;

const node = (script, ...args) => execFileSync(process.execPath, [join(JS, script), ...args], { encoding: "utf8", stdio: "pipe" });
const manifest = () => JSON.parse(readFileSync(join(folder, "package/package.json"), "utf8"));

before(() => {
  node("scripts/pack.mjs");
  folder = mkdtempSync(join(tmpdir(), "timepail-package-"));
  execFileSync("tar", ["-xzf", TARBALL, "-C", folder]);
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("the package has only what users need", () => {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map(({ parentPath, path, name }) => join(parentPath ?? path, name).slice(folder.length + 9)).sort();
  const guides = readdirSync(join(JS, "../docs")).filter((name) => name.endsWith(".md"));
  const entries = ["arrow", "cli", "deno-kv", "file", "index", "later", "node", "node-worker", "parquet-file", "pipelines", "react", "server", "slim", "sqlite", "svelte", "testing", "vue", "worker", "workerd"];
  const code = names.filter((name) => !name.endsWith(".d.ts"));
  assert.deepEqual(code, [
    "CHANGELOG.md",
    "COMPAT.md",
    "LICENSE",
    "README.md",
    ...[...entries.flatMap((entry) => [`dist/${entry}.js`, `dist/${entry}.js.map`]), "dist/THIRD-PARTY.txt", "dist/timepail-more.wasm", "dist/timepail.wasm"].sort(),
    ...guides.map((name) => `docs/${name}`).sort(),
    "llms.txt",
    "package.json",
  ]);
  // Declarations import each other; none is missing and none is unused.
  const reached = new Set();
  const follow = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const [, target] of readFileSync(join(folder, "package", file), "utf8").matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g)) follow(join(file, "..", target.replace(/\.[jt]s$/, ".d.ts")));
  };
  for (const target of Object.values(manifest().exports)) if (target.types) follow(join(target.types));
  assert.deepEqual([...reached].sort(), names.filter((name) => name.endsWith(".d.ts")));
});

test("links of the documents lead to others in the package", () => {
  const pages = ["README.md", "COMPAT.md", "CHANGELOG.md", "llms.txt", ...readdirSync(join(folder, "package/docs")).map((name) => `docs/${name}`)];
  let links = 0;
  for (const page of pages) {
    for (const [, link] of readFileSync(join(folder, "package", page), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      assert.ok(existsSync(join(folder, "package", page, "..", link)), `${page}: ${link}`);
      links++;
    }
  }
  assert.ok(links > 20);
});

test("a link to a file outside the package leads to the repository, or is plain text", () => {
  const text = "[here](b.md#x), [there](../ARCHITECTURE.md#floors), [below](#end), [away](https://example.org/b.md)";
  const linked = (repository) => withLinks("docs/a.md", text, ["docs/a.md", "docs/b.md"], repository);
  assert.equal(linked(""), text.replace("[there](../ARCHITECTURE.md#floors)", "there"));
  assert.equal(linked("https://example.org/r"), text.replace("../ARCHITECTURE.md", "https://example.org/r/blob/HEAD/ARCHITECTURE.md"));
});

test("the manifest names the repository if it has an address", () => {
  const { homepage, bugs, repository } = shipped({}, "https://example.org/r");
  assert.deepEqual([homepage, bugs.url, repository.url], ["https://example.org/r#readme", "https://example.org/r/issues", "git+https://example.org/r.git"]);
  assert.deepEqual(shipped({ scripts: {}, name: "a" }, ""), { name: "a" });
});

test("the manifest runs nothing on users' machines and names every entry for every runtime", () => {
  const { exports, scripts, devDependencies, optionalDependencies, dependencies, type, sideEffects } = manifest();
  assert.deepEqual([scripts, devDependencies, optionalDependencies, type, sideEffects], [undefined, undefined, undefined, "module", ["./dist/worker.js", "./dist/node-worker.js"]]);
  assert.deepEqual(Object.keys(dependencies), ["bson"]);
  assert.deepEqual(Object.keys(exports), [".", "./slim", "./worker", "./file", "./pipelines", "./arrow", "./react", "./vue", "./svelte", "./sqlite", "./deno-kv", "./server", "./testing", "./timepail.wasm", "./timepail-more.wasm", "./package.json"]);
  // Conditions are tried in order: Bun and Deno also have "node", and Workers have "browser".
  assert.deepEqual(Object.keys(exports["."]), ["types", "workerd", "deno", "bun", "browser", "node", "default"]);
  assert.deepEqual(Object.keys(exports["./worker"]), ["types", "deno", "bun", "browser", "node", "default"]);
  for (const target of Object.values(exports).flatMap((target) => (typeof target === "string" ? [target] : Object.values(target)))) {
    assert.ok(existsSync(join(folder, "package", target)), target);
  }
});

test("importing has no side effects, and adapters do not include the engine", async () => {
  // Load Vue first, because the globals of a framework are not tested here.
  await import("vue");
  const before = Object.keys(globalThis);
  for (const entry of ["index", "node", "slim", "worker", "later", "file", "pipelines", "arrow", "react", "vue", "svelte", "sqlite", "deno-kv", "server", "testing"]) {
    const exported = await import(join(JS, `dist/${entry}.js`));
    assert.ok(Object.keys(exported).length > 0, entry);
  }
  assert.deepEqual(Object.keys(globalThis), before);
  for (const entry of ["later", "file", "pipelines", "react", "vue", "svelte", "sqlite", "deno-kv", "testing"]) assert.doesNotMatch(readFileSync(join(JS, `dist/${entry}.js`), "utf8"), /WebAssembly\.(compile|instantiate)|from ?"bson"/, entry);
  assert.doesNotMatch(readFileSync(join(JS, "dist/slim.js"), "utf8"), /import\.meta|\.wasm"/);
});

test("the worker imports nothing, and bundlers leave the import of it alone", () => {
  for (const [entry, most] of [["worker", /^$/], ["node-worker", /^node:worker_threads$/]]) {
    const imported = [...readFileSync(join(JS, `dist/${entry}.js`), "utf8").matchAll(/\b(?:from|import) ?\(?["']([^"']+)/g)].map(([, name]) => name);
    assert.match(imported.join(), most, entry);
  }
  // The comments replace a name of the same length, so that the source map stays correct.
  for (const entry of ["index", "slim"]) assert.match(readFileSync(join(JS, `dist/${entry}.js`), "utf8"), /await import\(\/\*webpackIgnore:true\*\/\/\*@vite-ignore\*\/ {7}\(/, entry);
});

test("an uncaught error in Node prints only its source line", async () => {
  for (const entry of ["node", "node-worker", "file", "sqlite", "deno-kv", "testing"]) {
    const longest = Math.max(...readFileSync(join(folder, `package/dist/${entry}.js`), "utf8").split("\n").map((line) => line.length));
    assert.ok(longest < 400, `${entry}: a line of ${longest} characters`);
  }
  const program = `import { sqliteStorage } from ${JSON.stringify(join(JS, "dist/sqlite.js"))}; sqliteStorage("plant.db");`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /sqlite\.js:\d+\n +throw new TypeError\(`sqliteStorage takes an open database/);
  assert.ok(stderr.length < 1500, stderr);
});

test("the download size in the README is right to two per cent", () => {
  const { outputFiles } = buildSync({ stdin: { contents: 'export * from "./dist/index.js"', resolveDir: JS }, bundle: true, minify: true, format: "esm", external: ["./later.js"], write: false });
  const files = [Buffer.from(outputFiles[0].contents), ...["timepail.wasm", "timepail-more.wasm"].map((name) => readFileSync(join(JS, "dist", name)))];
  const sizes = [(bytes) => gzipSync(bytes, { level: 9 }), (bytes) => brotliCompressSync(bytes)].map((compress) => files.map((file) => compress(file).length / 1000));
  const told = [...readFileSync(join(JS, "../README.md"), "utf8").matchAll(/^\| .* \| (\d+) KB \| (\d+) KB \|$/gm)].map((row) => row.slice(1).map(Number));
  const sums = [2, 3].map((count) => sizes.map((all) => all.slice(0, count).reduce((sum, size) => sum + size)));
  assert.deepEqual([told.length, sizes.map(([script]) => Math.round(script))], [2, [38, 34]]);
  for (const [row, pair] of sums.entries()) for (const [at, sum] of pair.entries()) assert.ok(Math.abs(told[row][at] / sum - 1) < 0.02, `${told[row][at]} KB is told, ${sum} it is`);
});

test("publint finds nothing", () => {
  assert.match(node("node_modules/publint/src/cli.js", TARBALL, "--strict"), /All good/);
});

test("types resolve wherever modules do (attw)", () => {
  // Throws if it finds something.
  const said = node("node_modules/@arethetypeswrong/cli/dist/index.js", TARBALL, "--profile", "esm-only", "--no-color", "--no-emoji", "--exclude-entrypoints", "./timepail.wasm", "./timepail-more.wasm", "./package.json");
  for (const entry of ["timepail", "timepail/slim", "timepail/worker", "timepail/file", "timepail/pipelines", "timepail/arrow", "timepail/react", "timepail/vue", "timepail/svelte", "timepail/sqlite", "timepail/deno-kv", "timepail/server", "timepail/testing"]) assert.ok(said.includes(`"${entry}"`), entry);
});

test("the lock file is complete for npm ci on every platform", () => {
  const { packages } = JSON.parse(readFileSync(join(JS, "package-lock.json"), "utf8"));
  const known = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !known.has(name)).map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

// Builds the npm package in js/dist: compiles the crate to WebAssembly, generates the glue, divides and optimises the module, and bundles the driver.
//
//   node js/scripts/build.mjs [--dev]     --dev skips the optimisation for size: the build is faster, the module is 50 % larger, and panics have messages

import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { build as esbuild } from "esbuild";
import { compilerIn, readBuild } from "./builds.mjs";
import { withDependencies } from "./compiled.mjs";
import { withShortCopies } from "./copies.mjs";
import { withoutHoles } from "./data.mjs";
import { divide } from "./divide.mjs";
import { listed, mathIn, shortened, simplified, withoutLoader } from "./glue.mjs";
import { marksUnder } from "./marks.mjs";
import { minified } from "./minify.mjs";
import { withOrder } from "./order.mjs";
import { SHARED, renamed } from "./split.mjs";
import { DIST, JS, ROOT, Stop, WASM, bin, filesUnder, hashOf, main, must, once, seconds, step, toolEnv } from "./steps.mjs";
import { featuresOf, segmentsOf } from "./wasm.mjs";

/** The halves of the module in the package. */
const MODULES = ["timepail.wasm", "timepail-more.wasm"];
const SOURCES = ["index", "entry/node", "entry/workerd", "entry/slim", "entry/worker", "entry/node-worker", "later", "file", "pipelines", "arrow/index", "react", "vue", "svelte", "sqlite", "deno-kv", "server/index", "cli/index", "cli/formats/parquet-file", "testing/index"];
/** The files of the package and their sources: `entry/node.ts` and `testing/index.ts` become `node.js` and `testing.js`. */
const ENTRIES = Object.fromEntries(SOURCES.map((source) => [source.replace(/^entry\/|^cli\/formats\/|\/index$/g, ""), join(JS, `src/${source}.ts`)]));
/** The entries for Node, Bun and Deno, which are not minified: an uncaught error prints its source line, which would be the whole file otherwise. */
const READABLE = ["node", "node-worker", "file", "sqlite", "deno-kv", "server", "cli", "parquet-file", "testing"];
/** Packages that are bundled into some files: SASLprep for the passwords of SCRAM-SHA-256, Papa Parse for delimited text, flechette for Arrow, hyparquet and its companions for Parquet. */
const THIRD_PARTY = ["@mongodb-js/saslprep", "sparse-bitfield", "memory-pager", "papaparse", "@uwdata/flechette", "hyparquet", "hyparquet-compressors", "hyparquet-writer", "fzstd", "hysnappy"];
/** The entries with declarations of their own; all others use those of `index`. */
const DECLARED = ["index", "entry/slim", "entry/worker", "file", "pipelines", "arrow/index", "react", "vue", "svelte", "sqlite", "deno-kv", "server/index", "testing/index", "entry/wasm-source"];

/** Compiles the crate and resolves to the path of the module. Cargo skips this if nothing has changed. */
async function compile(toolEnv, { features, cargo, rustc, whole }, dev) {
  // Only a cdylib: if cargo builds an rlib as well, it omits link-time optimisation, which makes the module a tenth smaller.
  const args = ["rustc", "--release", "--package", "timepail", "--lib", "--crate-type", "cdylib", "--target", "wasm32-unknown-unknown", "--locked"];
  if (features.length > 0) args.push("--features", features.join(","));
  // Only the first variable applies flags of rustc to all crates, std included. The second one lets a stable compiler accept -Z flags.
  const env = dev ? toolEnv : { ...toolEnv, CARGO_ENCODED_RUSTFLAGS: rustc.join("\x1f"), RUSTC_BOOTSTRAP: "1" };
  if (!dev) args.push(...cargo);
  args.push("--message-format", "json-render-diagnostics");
  // These flags apply to the last crate, which link-time optimisation compiles together with all others.
  if (!dev) args.push("--", ...whole);
  const profiles = ["release", "wasm32-unknown-unknown/release"];
  const flags = dev ? features : [...features, ...cargo, ...rustc];
  const messages = await withDependencies(dev ? "wasm-dev" : "wasm", env, profiles, () => must("cargo", args, { env, show: "stderr" }), { flags });
  const artifacts = messages.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const files = artifacts.flatMap((message) => (message.target?.name === "timepail" ? (message.filenames ?? []) : []));
  const module = files.find((file) => file.endsWith(".wasm"));
  if (!module) throw new Stop("cargo named no module");
  return module;
}

/** Writes the glue, its declarations and the module, which is not optimised yet, into `folder`. With `dev`, functions keep readable names. */
async function bindgen(env, module, folder, dev) {
  rmSync(folder, { recursive: true, force: true });
  // The split needs the mangled symbols of the linker. A development build keeps demangled names, which are easier to read.
  const stripped = dev ? [] : ["--remove-producers-section", "--no-demangle"];
  // No default path: the driver passes the module, and bundlers would follow the default path of the glue to a file that is not shipped.
  const args = [module, "--out-dir", folder, "--out-name", "timepail", "--target", "web", "--omit-default-module-path", ...stripped];
  await must("wasm-bindgen", args, { env });
  return filesUnder(folder).map((file) => join(folder, file));
}

/** Writes the glue to the place from which the TypeScript source imports it, and both halves of the module into the package. */
async function optimise(folder, flags, { linked, marks, isPinned }) {
  mkdirSync(WASM, { recursive: true });
  mkdirSync(DIST, { recursive: true });
  const types = readFileSync(join(folder, "timepail.d.ts"), "utf8");
  writeFileSync(join(WASM, "timepail.d.ts"), `${types}\n/** Loads the second half of the module. */\nexport function complete(module: WebAssembly.Module): Promise<void>;\n`);
  const module = join(folder, "timepail_bg.wasm");
  const glue = simplified(withoutLoader(readFileSync(join(folder, "timepail.js"), "utf8")));
  const [first, second] = MODULES.map((name) => join(DIST, name));
  if (flags === undefined) {
    // Everything is in the first half.
    copyFileSync(module, first);
    writeFileSync(second, Buffer.from("\0asm\x01\0\0\0", "latin1"));
    writeFileSync(join(WASM, "timepail.js"), glue);
  } else {
    const { files, wrong } = await divide(linked, module, dirname(folder), marks);
    // Another version of the compiler inlines other functions, so marks may be wrong for it.
    if (wrong.length > 0 && isPinned) throw new Stop(`the halves of the module are not as the source says\n  ${wrong.join("\n  ")}`);
    for (const sentence of wrong) console.warn(`warning: ${sentence}`);
    const [one, other] = files;
    const [printed] = await Promise.all([
      shrink(one, flags, ["--minify-imports-and-exports-and-modules"], `${first}.new`),
      shrink(other, flags, [], `${second}.new`),
    ]);
    const renames = JSON.parse(printed);
    const long = new Map(renames.imports.map(([, name, short]) => [short, name]));
    const isFirst = new Set(long.values());
    const math = new Map([...mathIn(glue)].filter(([name]) => !isFirst.has(name)));
    const { glue: list, places } = listed(glue, (name) => !math.has(name));
    const exported = new Map(renames.exports);
    const nameOf = (name, from) => {
      if (from === SHARED) return [from, exported.get(name)];
      return math.has(name) ? ["Math", math.get(name)] : ["a", places.get(name)];
    };
    writeFileSync(`${first}.new`, withoutHoles(renamed(readFileSync(`${first}.new`), (short) => nameOf(long.get(short)))));
    writeFileSync(`${second}.new`, renamed(readFileSync(`${second}.new`), nameOf));
    writeFileSync(join(WASM, "timepail.js"), shortened(list, renames));
    for (const file of [first, second]) renameSync(`${file}.new`, file);
  }
  return [join(WASM, "timepail.js"), join(WASM, "timepail.d.ts"), first, second];
}

/** Addresses below this are not used, as wasm-opt is told: constants are behind the stack, and at its end, the stack has overflowed. */
const LOW_MEMORY_BYTES = 1024;

/** What wasm-opt calls features that the module lists by other names. */
const FEATURES = { "nontrapping-fptoint": "nontrapping-float-to-int", simd128: "simd" };

/** Runs wasm-opt over a half; resolves to its output. */
async function shrink(half, flags, more, target) {
  if (segmentsOf(readFileSync(half)).some(({ address }) => address < LOW_MEMORY_BYTES)) throw new Stop("constants are in the first kilobyte of memory, where the end of the stack should be");
  // The last flag is applied in the second run, together with the new order: without it, reading and writing the module makes it 0.8 KB longer.
  // Limits apply to both runs.
  const limits = flags.filter((flag) => flag.includes("="));
  const [text, optimised, ordered] = ["wat", "optimised.wasm", "ordered.wasm"].map((suffix) => half.replace("wasm", suffix));
  // A text does not list the features that the module may use.
  const features = featuresOf(readFileSync(half)).map((feature) => `--enable-${FEATURES[feature] ?? feature}`);
  writeFileSync(text, withShortCopies(await must(bin("wasm-dis"), [half, "-o", "-"])));
  await must(bin("wasm-opt"), [...features, ...flags.slice(0, -1), "--strip-debug", text, "-o", optimised]);
  writeFileSync(ordered, withOrder(readFileSync(optimised)));
  return must(bin("wasm-opt"), [...features, ...limits, ...flags.slice(-1), "--reorder-functions-by-name", ...more, ordered, "-o", target]);
}

/** Bundles each entry as one complete file: shared code would be a second file for every page, with 0.4 KB of headers. */
async function bundle() {
  for (const entry of readdirSync(DIST)) if (!MODULES.includes(entry)) rmSync(join(DIST, entry), { recursive: true });
  const named = Object.entries(ENTRIES);
  const kinds = [true, false].map((minify) => [minify, Object.fromEntries(named.filter(([name]) => READABLE.includes(name) !== minify))]);
  writeFileSync(join(DIST, "THIRD-PARTY.txt"), licences());
  const built = await Promise.all(kinds.map(([minify, entryPoints]) => bundleOf(entryPoints, minify)));
  const files = built.flatMap(({ metafile }) => Object.keys(metafile.outputs)).map((file) => join(ROOT, file));
  files.filter((file) => file.endsWith(".js")).forEach(withComments);
  return [join(DIST, "THIRD-PARTY.txt"), ...files];
}

/** The licences of the bundled packages. */
function licences() {
  const texts = THIRD_PARTY.map((name) => `${name}\n\n${readFileSync(join(JS, "node_modules", name, "LICENSE"), "utf8").trim()}\n`);
  return `server.js, cli.js, arrow.js and parquet-file.js contain these packages.\n\n${texts.join("\n----\n\n")}`;
}

/** Resolves built-in modules of Node that bundled packages import by their old names. */
const builtins = {
  name: "builtins",
  setup(build) {
    build.onResolve({ filter: /^(fs|zlib|stream)$/ }, ({ path }) => ({ path, namespace: "builtin" }));
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({ contents: `export * from "node:${path}"; export { default } from "node:${path}";` }));
  },
};

async function bundleOf(entryPoints, minify) {
  const built = await esbuild({
    entryPoints,
    outdir: DIST,
    absWorkingDir: ROOT,
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    // The last two are loaded on demand, from the folder of the entry that needs them.
    external: ["bson", "node:*", "timepail", "*.wasm", "react", "vue", "svelte/*", "./later.js", "./parquet-file.js"],
    plugins: [builtins],
    charset: "utf8",
    legalComments: "none",
    sourcemap: minify ? "external" : true,
    metafile: true,
    write: !minify,
    logLevel: "warning",
  }).catch(() => {
    throw new Stop("esbuild found the errors above");
  });
  const texts = new Map(built.outputFiles?.map(({ path, text }) => [path, text]));
  for (const [path, text] of texts) {
    if (!path.endsWith(".js")) continue;
    const name = basename(path);
    const { code, map } = await minified(name, text, texts.get(`${path}.map`));
    writeFileSync(path, `${code}\n//# sourceMappingURL=${name}.map\n`);
    writeFileSync(`${path}.map`, map);
  }
  return built;
}

/** Replaces the placeholder of remote.ts with comments for bundlers, of the same length, so that the source map stays correct. */
function withComments(file) {
  const text = readFileSync(file, "utf8");
  const comments = (room) => "/*webpackIgnore:true*//*@vite-ignore*/".padEnd(room.length);
  writeFileSync(file, text.replaceAll(/\bTHIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE\b/g, comments));
}

/** Writes the declarations that the entries reach; those of internal modules would clutter an editor. */
async function declare() {
  const emitted = join(ROOT, "target/declarations");
  rmSync(emitted, { recursive: true, force: true });
  await must(bin("tsc"), ["-p", join(JS, "tsconfig.build.json"), "--outDir", emitted]);
  // tsc does not copy existing declaration files: those of the glue, which wasm-bindgen writes, and those of the modules.
  for (const file of ["wasm/timepail.d.ts", "entry/wasm-source.d.ts"]) cpSync(join(JS, "src", file), join(emitted, file));
  const reached = new Set(DECLARED.map((source) => `${source}.d.ts`));
  for (const file of reached) {
    const text = readFileSync(join(emitted, file), "utf8");
    for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g))
      reached.add(join(dirname(file), target.replace(/\.[jt]s$/, ".d.ts")));
    cpSync(join(emitted, file), join(DIST, file));
  }
  return [...reached].map((file) => join(DIST, file));
}

await main(async () => {
  const start = performance.now();
  const dev = process.argv.includes("--dev");
  const unknown = process.argv.slice(2).find((argument) => argument !== "--dev");
  if (unknown) throw new Stop(`unknown argument ${unknown}; there is only --dev`);
  for (const entry of Object.values(ENTRIES)) if (!existsSync(entry)) throw new Stop(`${relative(ROOT, entry)} is missing`);

  const build = readBuild();
  const env = await toolEnv("env");
  const self = ["build", "steps", "glue", "wasm", "copies", "order", "split", "data", "divide", "graph", "marks", "symbols"].map((name) => join(JS, `scripts/${name}.mjs`));
  const compiler = await compilerIn(env);
  const isPinned = compiler === build.rust;
  if (!isPinned) console.warn(`warning: this is Rust ${compiler}, releases are built with ${build.rust} (wasm-pack.toml): sizes differ, and so does what is inlined`);

  const linked = await step("cargo", () => compile(env, build, dev));
  const glue = join(ROOT, "target/wasm-bindgen");
  await once("wasm-bindgen", hashOf([linked, ...self], `${build.bindgen} ${dev}`), () => bindgen(env, linked, glue, dev));
  const raw = filesUnder(glue).map((file) => join(glue, file));
  const flags = dev ? undefined : build.opt;
  const marks = marksUnder(join(ROOT, "src"));
  // The marks without their line numbers, which unrelated changes move.
  const named = JSON.stringify(marks.map(({ module, name, isLater }) => [module, name, isLater]));
  const inputs = hashOf([linked, ...raw, join(JS, "package-lock.json"), ...self], dev ? "dev" : flags.join(" "), named, compiler);
  await once("wasm-opt", inputs, () => optimise(glue, flags, { linked, marks, isPinned }));

  const settings = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"].map((file) => join(JS, file));
  const source = filesUnder(join(JS, "src")).filter((file) => !file.endsWith(".wasm")).map((file) => join(JS, "src", file));
  await once("bundle", hashOf([...source, ...settings, ...self, join(JS, "scripts/minify.mjs")]), async () => [...(await bundle()), ...(await declare())]);
  console.log(`built js/dist in ${seconds(start)}`);
});

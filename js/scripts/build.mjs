// Builds the npm package: Rust to wasm, wasm to glue, both under one bundled driver in js/dist.
//
//   node js/scripts/build.mjs [--dev]     --dev leaves out what makes the module small: quicker, a half larger, and panics have messages

import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build as esbuild } from "esbuild";
import { readBuild } from "./builds.mjs";
import { divide } from "./divide.mjs";
import { marksUnder } from "./marks.mjs";
import { withOrder } from "./order.mjs";
import { SHARED, renamed } from "./split.mjs";
import { DIST, JS, ROOT, Stop, WASM, bin, filesUnder, hashOf, main, must, once, seconds, step, toolEnv } from "./steps.mjs";

/** The halves of the module in the package. */
const MODULES = ["timepail.wasm", "timepail-more.wasm"];
/** What the second half takes from the first, as wasm-bindgen's module has it. */
const SHARED_NAMES = ["memory", "table0", "table1", "global0"];
const SOURCES = ["index", "entry/node", "entry/workerd", "entry/slim", "entry/worker", "entry/node-worker", "later", "file", "pipelines", "arrow/index", "react", "vue", "svelte", "sqlite", "deno-kv", "server/index", "cli/index", "cli/formats/parquet-file", "testing/index"];
/** The files of the package and their sources: `entry/node.ts` and `testing/index.ts` become `node.js` and `testing.js`. */
const ENTRIES = Object.fromEntries(SOURCES.map((source) => [source.replace(/^entry\/|^cli\/formats\/|\/index$/g, ""), join(JS, `src/${source}.ts`)]));
/** Those that run where they lie, in Node, Bun and Deno: an uncaught error prints the line that it comes from, which should not be the whole file. */
const READABLE = ["node", "node-worker", "file", "sqlite", "deno-kv", "server", "cli", "parquet-file", "testing"];
/** The packages inside some files: the passwords of SCRAM-SHA-256 go through SASLprep, files of delimited text through Papa Parse, tables of Arrow through flechette, files of Parquet through hyparquet and what belongs to it. */
const THIRD_PARTY = ["@mongodb-js/saslprep", "sparse-bitfield", "memory-pager", "papaparse", "@uwdata/flechette", "hyparquet", "hyparquet-compressors", "hyparquet-writer", "fzstd", "hysnappy"];
/** What users' compilers read; the declarations of the other entries are those of `index`. */
const DECLARED = ["index", "entry/slim", "entry/worker", "file", "pipelines", "arrow/index", "react", "vue", "svelte", "sqlite", "deno-kv", "server/index", "testing/index", "entry/wasm-source"];

/** Compiles the crate and resolves to the path of the module. Cargo knows itself whether there is anything to do. */
async function compile(toolEnv, { features, cargo, rustc, whole }, dev) {
  // Only a cdylib: asked for an rlib in the same breath, cargo leaves out the link-time optimisation that saves a tenth.
  const args = ["rustc", "--release", "--package", "timepail", "--lib", "--crate-type", "cdylib", "--target", "wasm32-unknown-unknown", "--locked"];
  if (features.length > 0) args.push("--features", features.join(","));
  // Flags of rustc reach all crates, std among them, by this variable only. A stable compiler takes those that begin with -Z by the other.
  const env = dev ? toolEnv : { ...toolEnv, CARGO_ENCODED_RUSTFLAGS: rustc.join("\x1f"), RUSTC_BOOTSTRAP: "1" };
  if (!dev) args.push(...cargo);
  args.push("--message-format", "json-render-diagnostics");
  // The last crate is compiled together with all others: link-time optimisation.
  if (!dev) args.push("--", ...whole);
  const messages = await must("cargo", args, { env, show: "stderr" });
  const artifacts = messages.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const files = artifacts.flatMap((message) => (message.target?.name === "timepail" ? (message.filenames ?? []) : []));
  const module = files.find((file) => file.endsWith(".wasm"));
  if (!module) throw new Stop("cargo named no module");
  return module;
}

/** Writes glue, declarations and the module, not yet optimised, into `folder`. A module to look into keeps the names of its functions. */
async function bindgen(env, module, folder, dev) {
  rmSync(folder, { recursive: true, force: true });
  // The split reads the names that the linker knows functions by; people read the others.
  const stripped = dev ? [] : ["--remove-producers-section", "--no-demangle"];
  // No default path: the driver says where the module is, and bundlers would follow the glue's guess to a file that is not shipped.
  const args = [module, "--out-dir", folder, "--out-name", "timepail", "--target", "web", "--omit-default-module-path", ...stripped];
  await must("wasm-bindgen", args, { env });
  return filesUnder(folder).map((file) => join(folder, file));
}

/** Puts glue and both halves of the module where the TypeScript source imports them and into the package. */
async function optimise(folder, flags, { linked, marks, isPinned }) {
  mkdirSync(WASM, { recursive: true });
  mkdirSync(DIST, { recursive: true });
  const types = readFileSync(join(folder, "timepail.d.ts"), "utf8");
  writeFileSync(join(WASM, "timepail.d.ts"), `${types}\n/** Loads the second half of the module. */\nexport function complete(module: WebAssembly.Module): Promise<void>;\n`);
  const module = join(folder, "timepail_bg.wasm");
  const glue = withoutLoader(readFileSync(join(folder, "timepail.js"), "utf8"));
  const [first, second] = MODULES.map((name) => join(DIST, name));
  if (flags === undefined) {
    // Everything is in the first half.
    copyFileSync(module, first);
    writeFileSync(second, Buffer.from("\0asm\x01\0\0\0", "latin1"));
    writeFileSync(join(WASM, "timepail.js"), glue);
  } else {
    const { files, wrong } = await divide(linked, module, dirname(folder), marks);
    // Another compiler inlines other functions, and then the marks are of others too.
    if (wrong.length > 0 && isPinned) throw new Stop(`the halves of the module are not as the source says\n  ${wrong.join("\n  ")}`);
    for (const sentence of wrong) console.warn(`warning: ${sentence}`);
    const [one, other] = files;
    const renames = JSON.parse(await shrink(one, flags, ["--minify-imports-and-exports-and-modules"], `${first}.new`));
    writeFileSync(join(WASM, "timepail.js"), shortened(glue, renames));
    await shrink(other, flags, [], `${second}.new`);
    // The glue has all functions under one name.
    const names = new Map(renames.imports.map(([, name, short]) => [name, short]));
    writeFileSync(`${second}.new`, renamed(readFileSync(`${second}.new`), "a", names));
    for (const file of [first, second]) renameSync(`${file}.new`, file);
  }
  return [join(WASM, "timepail.js"), join(WASM, "timepail.d.ts"), first, second];
}

/** Runs wasm-opt over a half; resolves to what it has printed. */
async function shrink(half, flags, more, target) {
  // The last of the flags comes with the new order: to read and write the module alone would make it 0.8 KB longer.
  const [optimised, ordered] = ["optimised", "ordered"].map((name) => half.replace(".wasm", `.${name}.wasm`));
  await must(bin("wasm-opt"), [...flags.slice(0, -1), "--strip-debug", half, "-o", optimised]);
  writeFileSync(ordered, withOrder(readFileSync(optimised)));
  return must(bin("wasm-opt"), [...flags.slice(-1), "--reorder-functions-by-name", ...more, ordered, "-o", target]);
}

/**
 * The glue with the names that wasm-opt has given to the module's imports and exports. A hundred long names, each with a hash in
 * it, stand in both files and compress badly: short ones save three kilobytes of module and two of glue.
 */
function shortened(glue, { imports, exports }) {
  const replace = (pattern, text) => {
    if (!pattern.test(glue)) throw new Stop(`the glue has nothing like ${pattern}: wasm-bindgen writes it in another way now`);
    glue = glue.replaceAll(new RegExp(pattern, "gm"), text);
  };
  const literal = (name) => name.replaceAll(/[$.]/g, "\\$&");
  const dollars = (name) => name.replaceAll("$", "$$$$");
  for (const [, name, short] of imports) replace(new RegExp(`(?<=^ +)${literal(name)}(?=:)`, "m"), dollars(short));
  // Some exports are for tools and threads; the glue does not use them.
  for (const [name, short] of exports) glue = glue.replaceAll(new RegExp(`(?<=\\bwasm\\.)${literal(name)}\\b`, "g"), dollars(short));
  // All imports come from one module, which wasm-opt calls "a".
  replace(new RegExp(`"${literal(imports[0][0])}"(?=: import)`), '"a"');
  return glue;
}

/**
 * The glue without its ways of fetching and compiling a module, and what they say in a console: load.ts does both, and hands over a
 * `WebAssembly.Module` in any case.
 */
function withoutLoader(glue) {
  const start = glue.indexOf("async function __wbg_load(");
  const end = glue.indexOf("export { initSync, __wbg_init as default };");
  if (start < 0 || end < start || !glue.includes("function __wbg_finalize_init(instance, module)")) {
    throw new Stop("the glue loads the module in another way now");
  }
  const load = `async function __wbg_init({ module_or_path: module }) {
    return wasm ??= __wbg_finalize_init(await WebAssembly.instantiate(module, __wbg_get_imports()), module);
}
async function complete(module) {
    const shared = { ${SHARED_NAMES.map((name) => `${name}: wasm.${name}`).join(", ")} };
    await WebAssembly.instantiate(module, { ...__wbg_get_imports(), ${SHARED}: shared });
}
export { __wbg_init as default, complete };
`;
  return glue.slice(0, start) + load;
}

/** A bundle for browsers, one for Node and so on, each whole: what they could share would be a second file for every page, 0.4 KB with its head. */
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

/** What others have written of the bundles, and under which terms. */
function licences() {
  const texts = THIRD_PARTY.map((name) => `${name}\n\n${readFileSync(join(JS, "node_modules", name, "LICENSE"), "utf8").trim()}\n`);
  return `server.js, cli.js, arrow.js and parquet-file.js contain these packages.\n\n${texts.join("\n----\n\n")}`;
}

/** What packages inside a bundle require of Node by its old name. */
const builtins = {
  name: "builtins",
  setup(build) {
    build.onResolve({ filter: /^(fs|zlib|stream)$/ }, ({ path }) => ({ path, namespace: "builtin" }));
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({ contents: `export * from "node:${path}"; export { default } from "node:${path}";` }));
  },
};

function bundleOf(entryPoints, minify) {
  return esbuild({
    entryPoints,
    outdir: DIST,
    absWorkingDir: ROOT,
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    // The last two are loaded when they are first needed, from beside whichever entry asks for it.
    external: ["bson", "node:*", "timepail", "*.wasm", "react", "vue", "svelte/*", "./later.js", "./parquet-file.js"],
    plugins: [builtins],
    minify,
    charset: "utf8",
    legalComments: "none",
    sourcemap: true,
    metafile: true,
    logLevel: "warning",
  }).catch(() => {
    throw new Stop("esbuild found the errors above");
  });
}

/** Puts comments for bundlers where the source has room for them, see remote.ts; nothing moves, so that the source map stays right. */
function withComments(file) {
  const text = readFileSync(file, "utf8");
  const comments = (room) => "/*webpackIgnore:true*//*@vite-ignore*/".padEnd(room.length);
  writeFileSync(file, text.replaceAll(/\bTHIS_IMPORT_IS_LEFT_ALONE_BY_WEBPACK_AND_VITE\b/g, comments));
}

/** Declarations of what those of the entries reach; those of inner modules would be noise in an editor. */
async function declare() {
  const emitted = join(ROOT, "target/declarations");
  rmSync(emitted, { recursive: true, force: true });
  await must(bin("tsc"), ["-p", join(JS, "tsconfig.build.json"), "--outDir", emitted]);
  // tsc carries over no declarations that it did not make: those of the glue are wasm-bindgen's, and those of the modules have no source.
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
  const self = ["build", "steps", "wasm", "order", "split", "data", "divide", "graph", "marks", "symbols"].map((name) => join(JS, `scripts/${name}.mjs`));
  const compiler = (await must("rustc", ["--version"], { env })).split(" ")[1];
  const isPinned = compiler === build.rust;
  if (!isPinned) console.warn(`warning: this is Rust ${compiler}, releases are built with ${build.rust} (wasm-pack.toml): sizes differ, and so does what is inlined`);

  const linked = await step("cargo", () => compile(env, build, dev));
  const glue = join(ROOT, "target/wasm-bindgen");
  await once("wasm-bindgen", hashOf([linked, ...self], `${build.bindgen} ${dev}`), () => bindgen(env, linked, glue, dev));
  const raw = filesUnder(glue).map((file) => join(glue, file));
  const flags = dev ? undefined : build.opt;
  const marks = marksUnder(join(ROOT, "src"));
  // Without their lines, which other changes move.
  const named = JSON.stringify(marks.map(({ module, name, isLater }) => [module, name, isLater]));
  const inputs = hashOf([linked, ...raw, join(JS, "package-lock.json"), ...self], dev ? "dev" : flags.join(" "), named, compiler);
  await once("wasm-opt", inputs, () => optimise(glue, flags, { linked, marks, isPinned }));

  const settings = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"].map((file) => join(JS, file));
  const source = filesUnder(join(JS, "src")).filter((file) => !file.endsWith(".wasm")).map((file) => join(JS, "src", file));
  await once("bundle", hashOf([...source, ...settings, ...self]), async () => [...(await bundle()), ...(await declare())]);
  console.log(`built js/dist in ${seconds(start)}`);
});

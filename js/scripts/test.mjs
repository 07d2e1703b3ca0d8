// Runs tests in stages, and prints totals. The stages of cargo run side by side with those of the package. A failed stage does not stop the others.
//
//   node js/scripts/test.mjs                  Installs all tools and runs all stages, as CI does.
//   node js/scripts/test.mjs --inner          Installs what INNER needs and runs INNER: the stages that tell most about a change in the least time.
//   node js/scripts/test.mjs stage ...        Runs these stages. The caller (Makefile) has installed the tools.
//
// The output of a stage is printed only if it fails. The last line is "N passed, N failed". A stage without tests fails, so that a suite cannot
// disappear unnoticed. A stage that ends with an error code fails, even if it counted no failure.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withDependencies } from "./compiled.mjs";
import { JS, ROOT, Stop, bin, filesUnder, main, must, run, seconds, toolEnv } from "./steps.mjs";

const WASM_TARGET = ["--target", "wasm32-unknown-unknown"];
const HEARTBEAT_MS = 30_000;
/** A failed stage shows that many lines once more at the end, behind the output of stages that ran beside it. */
const TAIL_LINES = 40;
const FILE_TIMEOUT_MS = 600_000;
/** The number of test programs that run at once. One more runs when cargo has ended. */
const PROGRAMS_MAX = Math.min(2, availableParallelism());
let cargoHasEnded = Promise.resolve();

// A stage resolves to { passed, failed, skipped?, output }.

/**
 * The stages of cargo's development builds. They run one after another, because cargo locks their folder. The first needs neither tools nor npm packages, so it
 * runs while they are installed. The last reports the lints of the others.
 */
const CARGO = { native, web, check };

/** The stages that write js/dist, or need it. */
const PACKAGE = {
  build: () => checks([["build js/dist", process.execPath, ["js/scripts/build.mjs"]]]),
  size: () => checks([["size budget", process.execPath, ["js/scripts/size.mjs", "--brief"]]]),
  js: () => nodeTests(runs(testFiles(/^(?!browser\/|runtimes\/|server\/|cli\/)/))),
  types,
  runtimes: async () => (await import("./runtimes.mjs")).runtimes(),
  server,
  pages: async () => nodeTests(inTwo(testFiles(SHARING)), await toolEnv("browser-env")),
  browser: async () => nodeTests([together(testFiles(IN_WORKER_TOO), IN_WORKER), ...runs(testFiles(/^browser\//).filter((file) => !SHARING.test(file)))], await toolEnv("browser-env")),
  browsers,
};
const STAGES = { ...CARGO, ...PACKAGE };
/** All logic on the host, the package as it ships in Node and in pages of Chromium, lints and sizes. The other stages run the same package in other places. */
const INNER = ["native", "check", "build", "size", "js", "types", "pages"];
/** Numbers of random cases, histories and orders in INNER, fewer than CI runs. No suite runs more than usual. */
const FEWER = { PROPTEST_CASES: "64", SIM_SEEDS: "80", INTERLEAVINGS_MAX: "100", CASES: "20" };
/** The stages that wait for browsers to be installed. */
const IN_BROWSERS = ["web", "pages", "browser", "browsers"];

/** Set by `make soak-browsers`: all tests of browsers run in all of them, with and without a worker. */
const IN_ALL = process.env.ALL_BROWSERS !== undefined;
/** The tests that run in the browsers besides Chromium in its default state, except live queries. */
const ABOUT_BROWSERS = IN_ALL ? /^browser\/(database|contexts|trouble|back|worker)\.test/ : /^browser\/(database|contexts|trouble|back)\.test/;
/** The ones that run there with the engine in a worker as well. */
const ABOUT_WORKERS = IN_ALL ? /^browser\/(database|contexts|live|trouble|back)\.test/ : /^browser\/contexts\.test/;
/** The ones that run with Chromium's other engine of IndexedDB. */
const ABOUT_STORAGE = IN_ALL ? /^browser\/(database|contexts|live|trouble|back|worker)\.test/ : /^browser\/(database|trouble)\.test/;

/** The tests that take their browser from js/test/browser/harness.ts. */
const SHARING = /^browser\/(database|contexts|live|trouble|back|worker|guides|frameworks)\.test/;

/** The variable that js/test/browser/harness.ts reads, and the tests that run with the engine in a worker as well. The other tests decide for themselves. */
const IN_WORKER = { WORKER: "1" };
const IN_WORKER_TOO = IN_ALL ? /^browser\/(database|contexts|live|trouble|back|guides)\.test/ : /^browser\/(database|contexts|live|trouble|back)\.test/;

/** Runs programs, each of which counts as one test: [name, command, args, env]. */
async function checks(list) {
  const result = { passed: 0, failed: 0, output: "" };
  for (const [name, command, args, env] of list) {
    const { code, output } = await run(command, args, { env });
    if (code === 0) result.passed++;
    else {
      result.failed++;
      result.output += `--- ${name}\n${output}\n`;
    }
  }
  return result;
}

/** Whether this is a run of INNER. */
const isInner = process.argv[2] === "--inner";

/** What cargo printed when `native` and `web` compiled their tests with clippy. */
const LINTED = {};

/** Format, and lints for the host and for wasm. Warnings are errors. What another stage of this run has linted is not compiled again. */
async function check() {
  const wasm = await toolEnv("env");
  const host = (await run("cargo", ["clippy", "--version"])).code === 0 ? process.env : wasm;
  const lint = ["clippy", "--all-targets", "--locked"];
  const strict = ["--", "-D", "warnings"];
  const left = [["cargo fmt", "cargo", ["fmt", "--check"], wasm]];
  if (!LINTED.host) left.push(["clippy on the host", "cargo", [...lint, ...strict], host]);
  // INNER skips this: few lines are for wasm alone, and the build of the package compiles them anyway.
  if (!LINTED.wasm && !isInner) left.push(["clippy for wasm", "cargo", ["clippy", "--lib", "--test", "web", "--locked", ...WASM_TARGET, ...strict], wasm]);
  const result = await checks(left);
  for (const [name, { code, output }] of Object.entries(LINTED)) {
    if (code === 0 && !/^(warning|error)\b/m.test(output)) result.passed++;
    else {
      result.failed++;
      result.output += `--- clippy for ${name}\n${output}\n`;
    }
  }
  return result;
}

/** The environment in which cargo compiles tests with `script` in place of rustc. */
const compiledBy = (script, env) => ({ ...env, RUSTC_WORKSPACE_WRAPPER: join(JS, "scripts", script) });

/**
 * Unit tests, integration tests and examples in docs, on the host. The crate is optimised a little and most of its tests are not, which takes the least time to
 * compile and run them. Everything is in one profile, because each further one compiles the dependencies and the crate again. For the same reason, clippy lints
 * what is compiled here. If the toolchain has no clippy, `check` looks for another one.
 */
async function native() {
  const hasClippy = (await run("clippy-driver", ["--version"])).code === 0;
  const env = compiledBy(hasClippy ? "rustc-lints.sh" : "rustc-tests.sh", process.env);
  const cargo = ["test", "--locked", "--no-fail-fast", "--profile", "soak"];
  const compiled = await withDependencies("host", env, ["soak"], () => run("cargo", [...cargo, "--no-run", "--lib", "--tests"], { env }));
  if (hasClippy) LINTED.host = compiled;
  const result = { passed: 0, failed: 0, skipped: 0, code: 0, output: "" };
  for (const wanted of [["--lib", "--tests"], ["--doc"]]) {
    const counts = cargoCounts(await run("cargo", [...cargo, ...wanted], { env: isInner ? { ...FEWER, ...env } : env }));
    showPrograms(counts.output);
    for (const key of ["passed", "failed", "skipped", "output"]) result[key] += counts[key];
    result.code ||= counts.code;
  }
  return result;
}

/** tests/web.rs in headless Chromium. */
async function web() {
  const browser = await toolEnv("browser-env");
  const env = { WASM_BINDGEN_TEST_TIMEOUT: "300", CARGO_PROFILE_DEV_DEBUG: "false", ...compiledBy("rustc-lints.sh", await toolEnv("env")), CHROMEDRIVER: browser.CHROMEDRIVER };
  // The runner starts the browser that this file names. The file is written each time, because the path differs between machines.
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  writeFileSync(join(ROOT, "webdriver.json"), JSON.stringify({ "goog:chromeOptions": { binary: browser.CHROME_PATH, args: quiet } }));
  const cargo = ["test", "--locked", ...WASM_TARGET, "--test", "web"];
  const profiles = ["debug", "wasm32-unknown-unknown/debug"];
  LINTED.wasm = await withDependencies("web", env, profiles, () => run("cargo", [...cargo, "--no-run"], { env }));
  return cargoCounts(await run("cargo", cargo, { env }));
}

/** Adds up the "test result:" lines of all test programs. */
function cargoCounts({ code, output }) {
  const result = { passed: 0, failed: 0, skipped: 0, code, output };
  for (const [, passed, failed, ignored] of output.matchAll(/^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm)) {
    result.passed += Number(passed);
    result.failed += Number(failed);
    result.skipped += Number(ignored);
  }
  return result;
}

/** Prints the number of tests of each program, and their time. Cargo prints the names of programs on one stream, and the tests print on the other. */
function showPrograms(output) {
  const names = [...output.matchAll(/^ +(?:Running (?:unittests )?|Doc-tests )(\S+)/gm)].map(([, name]) => name);
  const ends = [...output.matchAll(/^test result: .*?(\d+) passed; (\d+) failed; .*finished in ([\d.]+)s/gm)];
  // A program that crashed has no result, so results cannot be matched to names.
  if (names.length !== ends.length) return;
  ends.forEach(([, passed, failed, took], at) => console.log(`  ${names[at]}: ${passed} passed, ${failed} failed, ${took} s`));
}

/** Type checks: the source; js/test/types.test-d.ts with the shipped declarations, in strict mode; and js/test/types in a project that has only the library ES2022. */
async function types() {
  return checks([
    ["tsc on source and tests", bin("tsc"), ["-p", join(JS, "tsconfig.json")]],
    ["tsc on the shipped declarations", bin("tsc"), ["-p", join(JS, "tsconfig.types.json")]],
    ["tsc on what users write", bin("tsc"), ["-p", join(JS, "tsconfig.users.json")]],
  ]);
}

/** Test files; with the variable FILES, only those whose path contains its value. */
const testFiles = (wanted) => filesUnder(join(JS, "test")).filter((file) => /\.test\.(ts|mjs)$/.test(file) && wanted.test(file) && file.includes(process.env.FILES ?? ""));

/** Test files, each to be run by itself, with additional environment variables. */
const runs = (sources, more = {}) => sources.map((source) => ({ sources: [source], more }));

/** Test files to be run by one program, one after another: a browser takes longer to start than most of them. */
const together = (sources, more = {}) => ({ sources, more });

/** Test files to be run by two programs at once, each with a browser. */
const inTwo = (sources) => [0, 1].map((half) => together(sources.filter((_, at) => at % 2 === half)));

/**
 * Runs test files in separate programs, a few at once. They are bundled into js/.test-build with their relative imports. Packages stay imports,
 * so that "timepail" is the built package, resolved as for users. The working directory is js.
 */
async function nodeTests(wanted, env = process.env) {
  const result = { passed: 0, failed: 0, skipped: 0, output: "" };
  const out = join(JS, ".test-build");
  rmSync(out, { recursive: true, force: true });
  const all = wanted.filter(({ sources }) => sources.length > 0).values();
  const runRest = async () => {
    for (const { sources, more } of all) {
      const start = performance.now();
      const { BROWSER: browser = "", WORKER: worker } = more;
      const { files, code, output } = await nodeTest(sources, join(out, browser, worker ? "worker" : ""), { ...env, ...more });
      const titleOf = (source) => `${browser && `${browser}, `}${source}${worker ? ", in a worker" : ""}`;
      let failed = 0;
      for (const [source, counts] of files) {
        if (counts.passed + counts.failed + counts.skipped === 0) counts.failed = 1;
        for (const key of ["passed", "failed", "skipped"]) result[key] += counts[key];
        failed += counts.failed;
        const time = counts.ms === undefined ? seconds(start) : seconds(performance.now() - counts.ms);
        console.log(`  ${titleOf(source)}: ${counts.passed} passed, ${counts.failed} failed, ${time}`);
      }
      if (failed === 0 && code !== 0) failed = ++result.failed;
      if (failed > 0) result.output += `--- ${sources.map(titleOf).join("; ")}\n${output}\n`;
    }
  };
  let last;
  cargoHasEnded.then(() => {
    last = runRest();
    // It is awaited below.
    last.catch(() => {});
  });
  await Promise.all(Array.from({ length: PROGRAMS_MAX }, runRest));
  // If cargo has not ended by now, `last` is undefined, and no files are left for it.
  await last;
  return result;
}

/** Tests `timepail serve` with the Node driver, mongosh, PyMongo and Compass's data service, and the rest of the command line. Clients are installed first, so that no test waits for them. */
async function server() {
  await (await import("./clients.mjs")).clients();
  return nodeTests(runs(testFiles(/^(server|cli)\//)));
}

/** Runs the tests of browsers in all browsers but Chromium, and those of storage with its other engine. */
async function browsers() {
  const env = { ...(await toolEnv("browser-env")), ...(await toolEnv("firefox-env")), ...(await toolEnv("webkit-env")) };
  const missing = env.WEBKIT_MISSING;
  if (missing) console.log(`  webkit is left out: ${missing}`);
  const groupOf = (about, more) => together(testFiles(about).filter((file) => more.WORKER === undefined || IN_WORKER_TOO.test(file)), more);
  const groups = ["firefox", "webkit"].filter((name) => name !== "webkit" || !missing).flatMap((BROWSER) => [
    // In a program of its own, because background tabs in Firefox mostly wait.
    ...(IN_ALL ? [groupOf(/^browser\/live\.test/, { BROWSER })] : []),
    groupOf(ABOUT_BROWSERS, { BROWSER }),
    groupOf(ABOUT_WORKERS, { BROWSER, ...IN_WORKER }),
  ]);
  groups.push(groupOf(ABOUT_STORAGE, { BROWSER: "chromium-sqlite" }));
  if (IN_ALL) groups.push(groupOf(ABOUT_STORAGE, { BROWSER: "chromium-sqlite", ...IN_WORKER }));
  const result = await nodeTests(groups, env);
  if (missing) result.skipped++;
  return result;
}

/** Bundles test files into `folder` and runs them in one program. Resolves to the counts of each, the exit code and the output. */
async function nodeTest(sources, folder, env) {
  const none = () => ({ passed: 0, failed: 0, skipped: 0 });
  const built = sources.map((source) => join(folder, source.replace(/\.(ts|mjs)$/, ".mjs")));
  const { build: esbuild } = await import("esbuild");
  try {
    await esbuild({
      entryPoints: sources.map((source) => ({ in: join(JS, "test", source), out: source.replace(/\.(ts|mjs)$/, "") })),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      packages: "external",
      external: ["timepail", "timepail/*"], // named here, because tsconfig.json maps them to the source
      plugins: [scriptsStayWhereTheyAre],
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: "inline",
      logLevel: "silent",
    });
  } catch (error) {
    return { files: sources.map((source) => [source, none()]), code: 1, output: `${error.message}\n` };
  }
  const program = sources.length === 1 ? built[0] : built[0].replace(/mjs$/, "together.mjs");
  if (sources.length > 1) writeFileSync(program, runnerOf(sources, built));
  const countsFile = `${program}.counts`;
  const spec = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  const reporter = [`--test-reporter=${pathToFileURL(join(JS, "scripts/reporter.mjs"))}`, `--test-reporter-destination=${countsFile}`];
  const limit = { cwd: JS, env, timeout: FILE_TIMEOUT_MS * sources.length };
  const ended = await run(process.execPath, ["--enable-source-maps", ...spec, ...reporter, program], limit);
  const suites = JSON.parse((existsSync(countsFile) && readFileSync(countsFile, "utf8")) || "[]");
  const sum = (counts) => ["passed", "failed", "skipped"].reduce((sum, key) => ({ ...sum, [key]: counts.reduce((all, one) => all + one[key], 0) }), {});
  const countsOf = (source) => (sources.length === 1 ? sum(suites) : suites.find(({ name }) => name === source)) ?? none();
  return { files: sources.map((source) => [source, countsOf(source)]), ...ended };
}

/** A program that runs test files as suites, one after another. Each leaves its browser to the next. Two that load at once would get each other's tests. */
function runnerOf(sources, built) {
  const files = sources.map((source, at) => [source, pathToFileURL(built[at]).href]);
  return `import { after, describe } from "node:test";
globalThis.together = {};
after(() => globalThis.together.left?.end());
for (const [name, file] of ${JSON.stringify(files)}) {
  await new Promise((resolve) => describe(name, () => import(file).finally(resolve)));
}
`;
}

/** Scripts find the repository by their own path, so a bundled copy would look in the wrong place. */
const scriptsStayWhereTheyAre = {
  name: "scripts",
  setup: (build) =>
    build.onResolve({ filter: /^\.\.\/.*\bscripts\/.*\.mjs$/ }, ({ path, resolveDir }) => ({
      path: pathToFileURL(join(resolveDir, path)).href,
      external: true,
    })),
};

/** Installs compilers and npm packages at the same time, and then browsers. Returns two promises, so that the package is built while browsers are installed. */
function prepare() {
  const bring = async (name, commands) => {
    const start = performance.now();
    console.log(`${name} ...`);
    await Promise.all(commands.map(([command, ...args]) => must(command, args, { show: "stderr" })));
    console.log(`${name}: ${seconds(start)}`);
  };
  const tools = bring("tools", [["js/scripts/toolchain.sh", "wasm"], ["make", "--silent", "modules"]]);
  const browsers = tools.then(() => bring("browsers to test in", [["js/scripts/toolchain.sh", "browser", ...(isInner ? [] : ["firefox", "webkit"])]]));
  // Each stage reports the failure itself.
  browsers.catch(() => {});
  return { tools, browsers };
}

async function runStage(name, { tools, browsers }) {
  const ready = IN_BROWSERS.includes(name) ? browsers : tools;
  // The tools include a cargo for systems without one, so `native` waits for them there.
  if (name !== "native" || (await run("cargo", ["--version"])).code !== 0) await ready.catch(() => {});
  const start = performance.now();
  console.log(`${name} ...`);
  const alive = setInterval(() => console.log(`  ${name}: ${seconds(start)} so far`), HEARTBEAT_MS);
  let result;
  try {
    if (name !== "native") await ready;
    result = await STAGES[name]();
  } catch (error) {
    result = { passed: 0, failed: 1, output: `${error instanceof Stop ? error.message : error.stack}\n` };
  } finally {
    clearInterval(alive);
  }
  const { passed, code = 0, output, skipped = 0 } = result;
  let { failed } = result;
  const notes = [];
  if (failed === 0 && code !== 0) {
    failed = 1;
    notes.push(`ended with exit code ${code}`);
  }
  if (failed === 0 && passed === 0) {
    failed = 1;
    notes.push("found no tests");
  }
  if (skipped > 0) notes.push(`${skipped} skipped`);
  if (failed > 0) console.log(output);
  console.log([`${name}: ${passed} passed, ${failed} failed`, ...notes, seconds(start)].join(", "));
  return { passed, failed, tail: failed > 0 ? output.trimEnd().split("\n").slice(-TAIL_LINES) : [] };
}

await main(async () => {
  const named = isInner ? [] : process.argv.slice(2);
  const unknown = named.find((name) => !Object.hasOwn(STAGES, name));
  if (unknown) throw new Stop(`there is no stage ${unknown}; the stages are ${Object.keys(STAGES).join(", ")}`);
  const asked = isInner ? INNER : named.length > 0 ? named : Object.keys(STAGES);
  const ready = named.length > 0 ? { tools: Promise.resolve(), browsers: Promise.resolve() } : prepare();
  const total = { passed: 0, failed: 0 };
  const tails = [];
  const runAll = async (stages) => {
    for (const name of Object.keys(stages)) {
      if (!asked.includes(name)) continue;
      const { passed, failed, tail } = await runStage(name, ready);
      total.passed += passed;
      total.failed += failed;
      if (failed > 0) tails.push(`--- the end of what ${name} printed`, ...tail);
    }
  };
  const cargo = runAll(CARGO);
  cargoHasEnded = cargo;
  await Promise.all([cargo, runAll(PACKAGE)]);
  console.log([...tails, `${total.passed} passed, ${total.failed} failed`].join("\n"));
  if (total.failed > 0) process.exitCode = 1;
});

// Runs the tests and sums them up: what cargo tests beside what tests the package, stage after stage whatever the one before said.
//
//   node js/scripts/test.mjs [stage ...]      all stages when none is named, after what they need was brought; else that is the Makefile's business
//
// A stage's output is shown only when it failed. The last line is "N passed, N failed". A stage that found no test has failed: a suite
// that vanished must not be green. So has a stage that ended badly without counting a failure.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { JS, ROOT, Stop, bin, filesUnder, main, must, run, seconds, toolEnv } from "./steps.mjs";

const WASM_TARGET = ["--target", "wasm32-unknown-unknown"];
const HEARTBEAT_MS = 30_000;
const FILE_TIMEOUT_MS = 600_000;
/** Test files that run at once. A browser keeps a core busy, and whoever waits for it gives up some time. */
const FILES_MAX = Math.min(2, availableParallelism());

// A stage resolves to { passed, failed, skipped?, output }.

/** Stages of cargo's development builds, whose folder has one lock. The first needs neither tools nor npm packages, which may still be on their way. */
const CARGO = { native, check, web };

/** Stages that make js/dist, or need it. */
const PACKAGE = {
  build: () => checks([["build js/dist", process.execPath, ["js/scripts/build.mjs"]]]),
  size: () => checks([["size budget", process.execPath, ["js/scripts/size.mjs"]]]),
  js: () => nodeTests(runs(testFiles(/^(?!browser\/|runtimes\/|server\/|cli\/)/))),
  types,
  runtimes: async () => (await import("./runtimes.mjs")).runtimes(),
  server,
  browser: async () => nodeTests([...runs(testFiles(/^browser\//)), ...runs(testFiles(IN_WORKER_TOO), IN_WORKER)], await toolEnv("browser-env")),
  browsers,
};
const STAGES = { ...CARGO, ...PACKAGE };

/** The browsers beside Chromium as it is, and the tests that are about them. */
const OTHER_BROWSERS = ["chromium-sqlite", "firefox", "webkit"];
const ABOUT_BROWSERS = /^browser\/(database|contexts|live|trouble|back|worker)\.test/;

/** What js/test/browser/harness.ts reads, and the tests that run with the engine in a worker as well. The others say themselves where it is. */
const IN_WORKER = { WORKER: "1" };
const IN_WORKER_TOO = /^browser\/(database|contexts|live|trouble|back|guides)\.test/;

/** Runs programs that count as one test each: [name, command, args, env]. */
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

/** Format, and lints as they are for the host and for wasm. Warnings are errors. */
async function check() {
  const wasm = await toolEnv("env");
  const host = (await run("cargo", ["clippy", "--version"])).code === 0 ? process.env : wasm;
  const lint = ["clippy", "--all-targets", "--locked"];
  const strict = ["--", "-D", "warnings"];
  return checks([
    ["cargo fmt", "cargo", ["fmt", "--check"], wasm],
    ["clippy on the host", "cargo", [...lint, ...strict], host],
    ["clippy for wasm", "cargo", ["clippy", "--lib", "--test", "web", "--locked", ...WASM_TARGET, ...strict], wasm],
  ]);
}

/**
 * Unit tests, integration tests and examples in docs, on the host. The crate is optimised a little and most of its tests are not, which takes the least time for
 * compiling and running together. All is in one profile: each further one compiles the dependencies and the crate again.
 */
async function native() {
  const env = { ...process.env, RUSTC_WORKSPACE_WRAPPER: join(JS, "scripts/rustc-tests.sh") };
  const result = { passed: 0, failed: 0, skipped: 0, code: 0, output: "" };
  for (const wanted of [["--lib", "--tests"], ["--doc"]]) {
    const counts = cargoCounts(await run("cargo", ["test", "--locked", "--no-fail-fast", "--profile", "soak", ...wanted], { env }));
    showPrograms(counts.output);
    for (const key of ["passed", "failed", "skipped", "output"]) result[key] += counts[key];
    result.code ||= counts.code;
  }
  return result;
}

/** tests/web.rs in headless Chromium. */
async function web() {
  const browser = await toolEnv("browser-env");
  const env = { WASM_BINDGEN_TEST_TIMEOUT: "300", ...(await toolEnv("env")), CHROMEDRIVER: browser.CHROMEDRIVER };
  // The runner starts the browser that this file names; it is written anew because the place differs from machine to machine.
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  writeFileSync(join(ROOT, "webdriver.json"), JSON.stringify({ "goog:chromeOptions": { binary: browser.CHROME_PATH, args: quiet } }));
  return cargoCounts(await run("cargo", ["test", "--locked", ...WASM_TARGET, "--test", "web"], { env }));
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

/** Says how many tests each program had, and how long they ran. Cargo names a program on one stream, and its tests report on the other. */
function showPrograms(output) {
  const names = [...output.matchAll(/^ +(?:Running (?:unittests )?|Doc-tests )(\S+)/gm)].map(([, name]) => name);
  const ends = [...output.matchAll(/^test result: .*?(\d+) passed; (\d+) failed; .*finished in ([\d.]+)s/gm)];
  // A program that crashed has no result, and those behind it cannot be told apart.
  if (names.length !== ends.length) return;
  ends.forEach(([, passed, failed, took], at) => console.log(`  ${names[at]}: ${passed} passed, ${failed} failed, ${took} s`));
}

/**
 * The source as tsc sees it, then js/test/types.test-d.ts against the declarations that are shipped, as a strict user would, and js/test/types in a project without
 * any library but ES2022.
 */
async function types() {
  return checks([
    ["tsc on source and tests", bin("tsc"), ["-p", join(JS, "tsconfig.json")]],
    ["tsc on the shipped declarations", bin("tsc"), ["-p", join(JS, "tsconfig.types.json")]],
    ["tsc on what users write", bin("tsc"), ["-p", join(JS, "tsconfig.users.json")]],
  ]);
}

const testFiles = (wanted) => filesUnder(join(JS, "test")).filter((file) => /\.test\.(ts|mjs)$/.test(file) && wanted.test(file));

/** Test files with the variables that each is to have beside those of the others. */
const runs = (sources, more = {}) => sources.map((source) => [source, more]);

/**
 * Runs test files, one process each and a few at once. They are bundled into js/.test-build with what they import by path; packages stay
 * imports, so that "timepail" is the built package, found as its users find it. They run in the folder js.
 */
async function nodeTests(wanted, env = process.env) {
  const result = { passed: 0, failed: 0, skipped: 0, output: "" };
  const out = join(JS, ".test-build");
  rmSync(out, { recursive: true, force: true });
  const all = wanted.values();
  const runRest = async () => {
    for (const [source, more] of all) {
      const start = performance.now();
      const { BROWSER: browser = "", WORKER: worker } = more;
      const built = join(out, browser, worker ? "worker" : "", source.replace(/\.(ts|mjs)$/, ".mjs"));
      const counts = await nodeTest(source, built, { ...env, ...more });
      if (counts.passed + counts.failed + counts.skipped === 0) counts.output += "no test ran\n";
      if (counts.failed === 0 && (counts.code !== 0 || counts.passed + counts.skipped === 0)) counts.failed = 1;
      const name = `${browser && `${browser}, `}${source}${worker ? ", in a worker" : ""}`;
      if (counts.failed > 0) result.output += `--- ${name}\n${counts.output}\n`;
      for (const key of ["passed", "failed", "skipped"]) result[key] += counts[key];
      console.log(`  ${name}: ${counts.passed} passed, ${counts.failed} failed, ${seconds(start)}`);
    }
  };
  await Promise.all(Array.from({ length: FILES_MAX }, runRest));
  return result;
}

/** What the driver for Node, mongosh and PyMongo say of `timepail serve`, and the rest of the command line. Clients are brought before, so that no test waits for them. */
async function server() {
  return nodeTests(runs(testFiles(/^arrow/)));
}

/** What the tests of real browsers say of the others. */
async function browsers() {
  const env = { ...(await toolEnv("browser-env")), ...(await toolEnv("firefox-env")), ...(await toolEnv("webkit-env")) };
  const missing = env.WEBKIT_MISSING;
  if (missing) console.log(`  webkit is left out: ${missing}`);
  const each = OTHER_BROWSERS.filter((name) => name !== "webkit" || !missing).map((BROWSER) => ({ BROWSER }));
  const inWorker = testFiles(ABOUT_BROWSERS).filter((file) => IN_WORKER_TOO.test(file));
  const result = await nodeTests(each.flatMap((more) => [...runs(testFiles(ABOUT_BROWSERS), more), ...runs(inWorker, { ...more, ...IN_WORKER })]), env);
  if (missing) result.skipped++;
  return result;
}

/** Bundles one test file and runs it. */
async function nodeTest(source, built, env) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const { build: esbuild } = await import("esbuild");
  try {
    await esbuild({
      entryPoints: [join(JS, "test", source)],
      outfile: built,
      bundle: true,
      packages: "external",
      external: ["timepail", "timepail/*"], // named, for tsconfig.json maps them to the source
      plugins: [scriptsStayWhereTheyAre],
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: "inline",
      logLevel: "silent",
    });
  } catch (error) {
    return { ...counts, code: 1, output: `${error.message}\n` };
  }
  const countsFile = `${built}.counts`;
  const spec = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  const reporter = [`--test-reporter=${pathToFileURL(join(JS, "scripts/reporter.mjs"))}`, `--test-reporter-destination=${countsFile}`];
  const limit = { cwd: JS, env, timeout: FILE_TIMEOUT_MS };
  const ended = await run(process.execPath, ["--enable-source-maps", ...spec, ...reporter, built], limit);
  if (existsSync(countsFile)) Object.assign(counts, JSON.parse(readFileSync(countsFile, "utf8") || "{}"));
  return { ...counts, ...ended };
}

/** Scripts find the repository by where they lie, so a bundled copy would look in the wrong place. */
const scriptsStayWhereTheyAre = {
  name: "scripts",
  setup: (build) =>
    build.onResolve({ filter: /^\.\.\/.*\bscripts\/.*\.mjs$/ }, ({ path, resolveDir }) => ({
      path: pathToFileURL(join(resolveDir, path)).href,
      external: true,
    })),
};

/** Brings tools and npm packages, side by side. */
async function prepare() {
  const start = performance.now();
  console.log("tools ...");
  await Promise.all([
    must("js/scripts/toolchain.sh", ["wasm", "browser", "firefox", "webkit"], { show: "stderr" }),
    must("make", ["--silent", "modules"], { show: "stderr" }),
  ]);
  console.log(`tools: ${seconds(start)}`);
}

async function runStage(name, ready) {
  // A system without cargo gets one with the tools.
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
  return { passed, failed };
}

await main(async () => {
  const asked = process.argv.slice(2);
  const unknown = asked.find((name) => !Object.hasOwn(STAGES, name));
  if (unknown) throw new Stop(`there is no stage ${unknown}; the stages are ${Object.keys(STAGES).join(", ")}`);
  const ready = asked.length > 0 ? Promise.resolve() : prepare();
  const total = { passed: 0, failed: 0 };
  const runAll = async (stages) => {
    for (const name of Object.keys(stages)) {
      if (asked.length > 0 && !asked.includes(name)) continue;
      const { passed, failed } = await runStage(name, ready);
      total.passed += passed;
      total.failed += failed;
    }
  };
  await Promise.all([CARGO, PACKAGE].map(runAll));
  console.log(`${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0) process.exitCode = 1;
});

// Measures the codec of compressed columns in WebAssembly, on one core: millions of values per second, compared with a copy of the
// same cells in the same run, and bytes per value. Only ratios within one run mean anything.
//
//   node bench/columns.mjs [--rounds 7] [--json file]

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { readBuild } from "../js/scripts/builds.mjs";
import { ROOT, bin, main, must, toolEnv } from "../js/scripts/steps.mjs";

const ROWS = 1000;
const CASES = [
  "constant doubles",
  "two-decimal walk, ±0.05",
  "two-decimal walk, ±0.5",
  "one-decimal walk, ±0.2",
  "random mantissas",
  "dates, 1 s apart",
  "dates, 1 s ± 5 ms",
  "int64 counter",
  "int32 below 100",
  "bool, 1 % flips",
];

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** The module, compiled and optimised like that of the package. */
async function build() {
  const env = await toolEnv("env");
  const crate = join(dirname(fileURLToPath(import.meta.url)), "columns");
  const target = join(ROOT, "target/bench-columns");
  const { opt, rustc, cargo } = readBuild();
  // The flags without those that rebuild std: the crate of loops uses the precompiled one.
  const kernels = cargo.filter((flag) => !flag.startsWith("-Zbuild-std"));
  const args = ["rustc", ...kernels, "--release", "--target", "wasm32-unknown-unknown", "--manifest-path", join(crate, "Cargo.toml"), "--target-dir", target, "--", ...rustc];
  await must("cargo", args, { env: { ...env, RUSTC_BOOTSTRAP: "1" }, show: "stderr" });
  const module = join(target, "wasm32-unknown-unknown/release/timepail_bench_columns.wasm");
  const out = join(target, "glue");
  await must("wasm-bindgen", [module, "--out-dir", out, "--out-name", "columns", "--target", "web"], { env });
  const optimised = join(out, "columns.wasm");
  await must(bin("wasm-opt"), [...opt, join(out, "columns_bg.wasm"), "-o", optimised]);
  const glue = await import(pathToFileURL(join(out, "columns.js")));
  glue.initSync({ module: readFileSync(optimised) });
  return glue.Case;
}

/** Nanoseconds per value: the median over rounds of batches that last about 20 ms. */
function measure(work, rounds) {
  let times = 16;
  const run = () => {
    const start = performance.now();
    work(times);
    return performance.now() - start;
  };
  while (run() < 20) times *= 2;
  return (median(Array.from({ length: rounds }, run)) * 1e6) / (times * ROWS);
}

await main(async () => {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "7" }, json: { type: "string" } } });
  const rounds = Number(values.rounds);
  const Case = await build();
  const results = CASES.map((name) => {
    const column = new Case(name);
    const [copy, encode, decode] = ["copy", "encode", "decode"].map((what) => measure((times) => column[what](times), rounds));
    return { name, bytes: column.size() / ROWS, copy, encode, decode };
  });
  const rate = (ns) => (1000 / ns).toFixed(0).padStart(7);
  const ratio = (ns, copy) => `(${(ns / copy).toFixed(1)})`.padStart(8);
  console.log(`${ROWS} values a column; million values a second (time against a copy of the cells in brackets)`);
  console.log(`${"column".padEnd(26)}${"bytes/value".padStart(12)}${"copy".padStart(9)}${"encode".padStart(16)}${"decode".padStart(16)}`);
  for (const { name, bytes, copy, encode, decode } of results)
    console.log(
      `${name.padEnd(26)}${bytes.toFixed(3).padStart(12)}  ${rate(copy)} ${rate(encode)}${ratio(encode, copy)} ${rate(decode)}${ratio(decode, copy)}`,
    );
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ rows: ROWS, results }, null, 2)}\n`);
});

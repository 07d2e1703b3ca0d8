// The clients that test the server and exported files: the official Node driver, mongosh, the data service of Compass, PyMongo, and libraries for Arrow and Parquet in Python
// and JavaScript. They are installed once, in the folder of the tools.
//
//   node js/scripts/clients.mjs        installs them, and prints their paths

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Stop, TOOLS, main, must, run } from "./steps.mjs";

/** Their versions. They are part of the folder name, so each set of versions has a folder of its own. */
const NODE = { mongodb: "7.9.0", mongosh: "2.12.0", "mongodb-data-service": "22.41.1", "@duckdb/duckdb-wasm": "1.32.0", "@observablehq/plot": "0.6.17", linkedom: "0.18.15" };
const PYTHON = { pymongo: "4.20.0", pyarrow: "26.0.1", polars: "2.1.0", pandas: "3.1.1", duckdb: "2.0.0" };
const FOLDER = join(TOOLS, `clients-${createHash("sha256").update(JSON.stringify([NODE, PYTHON])).digest("hex").slice(0, 12)}`);

/** The path of each: a folder of packages for Node, one of them for `import`, a script for Node, and a folder for Python. */
const PLACES = { packages: join(FOLDER, "node_modules"), mongodb: join(FOLDER, "node_modules/mongodb"), mongosh: join(FOLDER, "node_modules/mongosh/bin/mongosh.js"), python: join(FOLDER, "python") };

/** The clients, which are installed first if they are missing. Fails if they cannot be installed. */
export async function clients() {
  if (existsSync(FOLDER)) return PLACES;
  // Renamed when it is complete, so that a run at the same time finds all of it or nothing.
  const folder = `${FOLDER}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  try {
    await Promise.all([forNode(folder), forPython(folder)]);
    if (!existsSync(FOLDER)) renameSync(folder, FOLDER);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return PLACES;
}

async function forNode(folder) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify({ private: true, dependencies: NODE })}\n`);
  // Their install scripts would compile native parts that are not needed here: Kerberos, encryption, the name of the machine.
  await must("npm", ["install", "--ignore-scripts", "--no-progress", "--no-audit", "--no-fund", "--loglevel", "error"], { cwd: folder });
}

async function forPython(folder) {
  const packages = Object.entries(PYTHON).map(([name, version]) => `${name}==${version}`);
  const program = (await run("python3", ["-m", "pip", "--version"])).code === 0 ? "python3" : await ownPip(folder);
  // Modules are compiled on import; most are never imported.
  await must(program, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target", join(folder, "python"), ...packages]);
}

/** A Python with pip, also if the system's Python has none: Debian has pip in a separate package. */
async function ownPip(inside) {
  const folder = join(inside, "venv");
  const made = await run("python3", ["-m", "venv", folder]);
  if (made.code !== 0) throw new Stop(`The tests need Python 3 with pip or venv (Debian: apt-get install python3-venv)\n${made.output}`);
  return join(folder, "bin/python");
}

if (process.argv[1] === import.meta.filename) await main(async () => console.log(await clients()));

// The clients that test the server and exported files: the official Node driver, mongosh, PyMongo, and Python libraries for Arrow and Parquet. They are installed
// once, in the folder of the tools.
//
//   node js/scripts/clients.mjs        installs them, and prints their paths

import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Stop, TOOLS, main, must, run } from "./steps.mjs";

/** Their versions. They are part of the folder name, so each set of versions has a folder of its own. */
const NODE = { mongodb: "7.9.0", mongosh: "2.12.0" };
const PYTHON = { pymongo: "4.20.0", pyarrow: "26.0.1", polars: "2.1.0", pandas: "3.1.1", duckdb: "2.0.0" };
const FOLDER = join(TOOLS, `clients-${Object.values({ ...NODE, ...PYTHON }).join("-")}`);
const DONE = join(FOLDER, ".complete");

/** The path of each: a folder for `import`, a script for Node, and a folder for Python. */
const PLACES = { mongodb: join(FOLDER, "node_modules/mongodb"), mongosh: join(FOLDER, "node_modules/mongosh/bin/mongosh.js"), python: join(FOLDER, "python") };

/** The clients, which are installed first if they are missing. Fails if they cannot be installed. */
export async function clients() {
  if (existsSync(DONE)) return PLACES;
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), `${JSON.stringify({ private: true, dependencies: NODE })}\n`);
  // Their install scripts would compile native parts that are not needed here: Kerberos, encryption, the name of the machine.
  await must("npm", ["install", "--ignore-scripts", "--no-progress", "--no-audit", "--no-fund", "--loglevel", "error"], { cwd: FOLDER });
  const target = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", PLACES.python, ...Object.entries(PYTHON).map(([name, version]) => `${name}==${version}`)];
  if ((await run("python3", ["-m", "pip", "--version"])).code === 0) await must("python3", target);
  else await must(await ownPip(), target);
  writeFileSync(DONE, "");
  return PLACES;
}

/** A Python with pip, also if the system's Python has none: Debian has pip in a separate package. */
async function ownPip() {
  const folder = join(FOLDER, "venv");
  const made = await run("python3", ["-m", "venv", folder]);
  if (made.code !== 0) throw new Stop(`The tests need Python 3 with pip or venv (Debian: apt-get install python3-venv)\n${made.output}`);
  return join(folder, "bin/python");
}

if (process.argv[1] === import.meta.filename) await main(async () => console.log(await clients()));

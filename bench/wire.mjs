// Over the wire, beside the same calls in process: `npx timepail serve` with the official driver, with PyMongo and with a client that only sends bytes, and `openFile`.
// Each in a process of its own, over a SQLite file of its own, in turns. Prints a table in Markdown.
//
//   node bench/wire.mjs [--points 200000] [--rounds 5]

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { clients } from "../js/scripts/clients.mjs";
import { node24 } from "../js/scripts/runtimes.mjs";
import { ROOT, must } from "../js/scripts/steps.mjs";

const { values: args } = parseArgs({ options: { points: { type: "string", default: "200000" }, rounds: { type: "string", default: "5" } } });
const places = await clients();
const folder = mkdtempSync(join(tmpdir(), "timepail-wire-"));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** A server over a new file, and how to end it. */
async function served(name) {
  const child = spawn(node24(), [join(ROOT, "js/dist/cli.js"), "serve", join(folder, `${name}.db`), "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const uri = await new Promise((resolve, reject) => {
    child.stdout.on("data", (line) => resolve(/mongodb:\S+/.exec(String(line))[0]));
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const end = () => new Promise((resolve) => child.on("exit", resolve).kill("SIGTERM"));
  return { uri, end };
}

const client = (name) => join(ROOT, "bench/wire", name);
/** What is compared: a program that prints its times, in milliseconds, as JSON. */
const CONTENDERS = {
  "in process": (run) => must(node24(), ["--no-warnings", client("in_process.mjs"), join(folder, `${run}.db`), args.points]),
  "driver for Node": (run) => overWire(run, (uri) => must(node24(), [client("driver.mjs"), uri, args.points, places.mongodb])),
  "sent as it was encoded before": (run) => overWire(run, (uri) => must(node24(), [client("prepared.mjs"), uri, args.points, places.mongodb])),
  PyMongo: (run) => overWire(run, (uri) => must("python3", [client("driver.py"), uri, args.points], { env: { ...process.env, PYTHONPATH: places.python } })),
};

async function overWire(run, work) {
  const { uri, end } = await served(run);
  try {
    return await work(uri);
  } finally {
    await end();
  }
}

try {
  const times = {};
  const names = Object.keys(CONTENDERS);
  for (let round = 0; round < Number(args.rounds); round++) {
    for (const name of round % 2 ? names : names.toReversed()) {
      for (const [task, both] of Object.entries(JSON.parse(await CONTENDERS[name](`${round}-${names.indexOf(name)}`)))) ((times[task] ??= {})[name] ??= []).push(both);
    }
  }
  const medians = (of, name, at) => median(of[name].map((both) => both[at]));
  console.log(`${args.points} measurements, ${args.rounds} rounds, medians in milliseconds: time, ratio, processor time of the process that stores, and of the client\n`);
  console.log(`| task | ${names.join(" | ")} |\n|---|${"---|".repeat(names.length)}`);
  for (const [task, of] of Object.entries(times)) {
    const base = medians(of, names[0], 0);
    const cell = (name) => {
      if (!of[name]) return "–";
      const took = `${medians(of, name, 0).toFixed(0)} (${(medians(of, name, 0) / base).toFixed(2)}), ${medians(of, name, 1).toFixed(0)}`;
      return name === names[0] ? took : `${took}, ${medians(of, name, 2).toFixed(0)}`;
    };
    console.log(`| ${task} | ${names.map(cell).join(" | ")} |`);
  }
  for (const task of Object.keys(times).slice(0, 2)) {
    for (const name of names) console.log(`- ${task}, ${name}: ${Math.round((Number(args.points) / medians(times[task], name, 0)) * 1000).toLocaleString("en-US")} measurements a second`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

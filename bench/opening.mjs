// How long a new browser process takes to open a stored database and to answer a query: a new process and a new copy of the profile per
// round, because opening the database folds the journals of others. Measured twice: after browser and page have finished starting,
// and immediately, while the browser's own windows and services still compete with the page.
//
//   node bench/opening.mjs [--rounds 9] [--against folder]     another build of the package, which takes turns with this one

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { launchChromium } from "../js/scripts/chromium.mjs";
import { serve } from "../js/scripts/serve.mjs";

const { values: args } = parseArgs({ options: { rounds: { type: "string", default: "9" }, against: { type: "string" } } });
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
/** The time after which browser and page have finished starting. */
const START_MS = 2000;
const folder = mkdtempSync(join(tmpdir(), "timepail-opening-"));
const root = join(dirname(fileURLToPath(import.meta.url)), "page");

/** A build with its own server and stored database. */
async function builtAs(name, dist) {
  const server = await serve({ port: 0, root, more: dist ? { "/timepail/": resolve(dist) } : {} });
  const stored = join(folder, name);
  await page(server, stored, "fill");
  return { name, server, stored, results: { ask: [], bare: [], rushed: [] } };
}

/** The result of `task` in a page of a new browser, started `startMs` after it was loaded. */
async function page(server, profile, task, startMs = 0) {
  const browser = await launchChromium(profile, { isWhole: true });
  try {
    const page = await browser.newPage();
    await page.goto(`${server.url}/opening.html`);
    await sleep(startMs);
    return await page.evaluate((task) => globalThis.tasks[task](), task);
  } finally {
    await browser.close();
  }
}

function print({ name, results }) {
  const show = (task, of, what) => {
    const values = results[of].map((result) => result[what]);
    console.log(`${task.padEnd(60)}${median(values).toFixed(1).padStart(8)} ms  (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`);
  };
  console.log(`${name}: ${results.ask[0].halves} file(s) of WebAssembly loaded`);
  show("open() and the first answer", "ask", "answered");
  show("of this open()", "ask", "opened");
  show("the second answer", "ask", "again");
  show("IndexedDB alone, opened and asked for ten entries", "bare", "answered");
  show("while the browser starts: open() and the first answer", "rushed", "answered");
  show("navigation to the first answer", "rushed", "navigated");
}

const builds = [];
try {
  builds.push(await builtAs("timepail"));
  if (args.against) builds.push(await builtAs("the other build", args.against));
  for (let round = 0; round < Number(args.rounds); round++) {
    for (const { name, server, stored, results } of round % 2 ? builds.toReversed() : builds) {
      for (const task of Object.keys(results)) {
        const profile = join(folder, `${name}-${task}-${round}`);
        cpSync(stored, profile, { recursive: true });
        const isRushed = task === "rushed";
        results[task].push(await page(server, profile, isRushed ? "ask" : task, isRushed ? 0 : START_MS));
        rmSync(profile, { recursive: true });
      }
    }
  }
  builds.forEach(print);
} finally {
  for (const { server } of builds) await server.close();
  rmSync(folder, { recursive: true, force: true });
}

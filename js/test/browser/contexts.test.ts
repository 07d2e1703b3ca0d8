// Every kind of context in which a browser runs scripts: a page, dedicated, shared and service workers, all over one database.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BROWSER, bundled, errors, tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

const scripts = mkdtempSync(join(tmpdir(), "timepail-scripts-"));
useBrowser({ "/scripts/": scripts });

/** Inserts and counts on request, and replies through `answer` of its kind of worker. */
const BODY = `
  import { open } from "./dist/index.js";
  async function work({ who, rows }) {
    try {
      const at = (path) => new URL("/timepail/" + path, location.origin).href;
      const db = await open("contexts", { wasm: at("timepail.wasm"), wasmMore: at("timepail-more.wasm") });
      const c = db.collection("c");
      await c.insertMany(Array.from({ length: rows }, (_, n) => ({ at: new Date(n * 1000), m: who, n })));
      const [{ n }] = await c.aggregate([{ $match: { m: who } }, { $group: { _id: null, n: { $sum: 1 } } }]).toArray();
      await db.close();
      return n;
    } catch (error) {
      return String(error);
    }
  }
`;
const SHELLS = {
  dedicated: `onmessage = async ({ data }) => postMessage(await work(data));`,
  shared: `onconnect = ({ ports: [port] }) => { port.onmessage = async ({ data }) => port.postMessage(await work(data)); };`,
  service: `onmessage = (event) => event.waitUntil(work(event.data).then((answer) => event.ports[0].postMessage(answer)));`,
};

before(async () => {
  mkdirSync(scripts, { recursive: true });
  for (const [kind, shell] of Object.entries(SHELLS)) writeFileSync(join(scripts, `${kind}.js`), await bundled(BODY + shell));
});

after(() => rmSync(scripts, { recursive: true, force: true }));

test("a page and all kinds of workers write and read one database", async () => {
  const page = await tab();
  await page.evaluate(async () => {
    const db = await timepail.open("contexts");
    await db.createCollection("c", { timeseries: { timeField: "at", metaField: "m" } });
    await db.close();
  });
  const ask = (kind: string): Promise<unknown> =>
    page.evaluate(async (kind) => {
      const url = `/scripts/${kind}.js`;
      const message = { who: kind, rows: 1500 };
      if (kind === "service") {
        const registration = await navigator.serviceWorker.register(url, { type: "module" });
        const worker = registration.installing!;
        while (worker.state !== "activated") await new Promise((resolve) => worker.addEventListener("statechange", resolve, { once: true }));
        const { port1, port2 } = new MessageChannel();
        const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
        worker.postMessage(message, [port2]);
        return answer;
      }
      const worker = kind === "shared" ? new SharedWorker(url, { type: "module" }).port : new Worker(url, { type: "module" });
      return new Promise((resolve) => {
        worker.onmessage = ({ data }: MessageEvent) => resolve(data);
        worker.postMessage(message);
      });
    }, kind);
  const kinds = Object.keys(SHELLS);
  assert.deepEqual(await Promise.all(kinds.map(ask)), kinds.map(() => 1500), BROWSER);
  const all = await page.evaluate(async () => {
    const db = await timepail.open("contexts");
    const rows = await db.collection("c").find().toArray();
    await db.close();
    return rows.map((row) => `${row["m"]} ${row["n"]}`);
  });
  assert.equal(all.length, 4500);
  assert.equal(new Set(all).size, 4500);
  await page.close();
});

test("no page reported an unexpected error", () => {
  assert.deepEqual(errors, []);
});

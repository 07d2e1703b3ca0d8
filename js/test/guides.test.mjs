// The examples of docs/: they run, and the pages show them as they are.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tableFromIPC } from "apache-arrow";
import { transform } from "esbuild";
import { open } from "timepail";
import { reference } from "../scripts/api.mjs";

const DOCS = join(process.cwd(), "../docs");
const EXAMPLES = join(process.cwd(), "examples");
const GUIDES = join(EXAMPLES, "guides");
const example = (name) => import(join(GUIDES, name));

test("pages of docs/ show their examples verbatim, and every example is shown", () => {
  const shown = new Set();
  for (const page of readdirSync(DOCS).filter((name) => name.endsWith(".md"))) {
    const text = readFileSync(join(DOCS, page), "utf8");
    for (const [, name, code] of text.matchAll(/`js\/examples\/([\w-]+\/[\w.-]+)`[^\n]*\n\n```(?:jsx?|ts|vue|svelte)\n([^]*?)```/g)) {
      assert.equal(code, readFileSync(join(EXAMPLES, name), "utf8"), `${page}: ${name}`);
      shown.add(name);
    }
  }
  assert.deepEqual([...shown].filter((name) => name.startsWith("guides/")).sort(), readdirSync(GUIDES).map((name) => `guides/${name}`).sort());
  assert.deepEqual([...shown].filter((name) => name.includes("/rooms.")).sort(), ["react/rooms.jsx", "svelte/rooms.svelte", "vue/rooms.vue"]);
});

test("the reference matches the declarations (node js/scripts/api.mjs writes it)", () => {
  assert.equal(readFileSync(join(DOCS, "api.md"), "utf8"), reference());
});

test("links between the documents are valid", () => {
  const ROOT = join(DOCS, "..");
  const listed = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).map((name) => join("docs", name));
  const others = ["README.md", "llms.txt", "ARCHITECTURE.md", "COMPAT.md", "CONTRIBUTING.md", "bench/README.md", "bench/decisions.md"];
  const anchors = (text) => [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => title.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-"));
  const broken = [];
  for (const page of [...listed.filter((name) => name.endsWith(".md")), ...others]) {
    for (const [, link, anchor] of readFileSync(join(ROOT, page), "utf8").matchAll(/\]\((?!https?:)([^)#]*)#?([^)]*)\)/g)) {
      const target = link ? join(ROOT, page, "..", link) : join(ROOT, page);
      if (!existsSync(target) || (anchor && !anchors(readFileSync(target, "utf8")).includes(anchor))) broken.push(`${page}: ${link}#${anchor}`);
    }
  }
  assert.deepEqual(broken, []);
});

test("the tour lists exactly the existing files", () => {
  const ROOT = join(DOCS, "..");
  const isSource = (name) => /\.(rs|ts|mjs|sh)$/.test(name) && !name.endsWith(".d.mts") && !name.startsWith("js/src/wasm/");
  const inside = (folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`);
  const files = ["src", "js/src", "js/scripts", "js/test", "kernels", "tests"].flatMap(inside).filter(isSource);
  const named = [];
  let folder = "";
  for (const line of readFileSync(join(DOCS, "internals/tour.md"), "utf8").split("\n")) {
    folder = /^## `(.*)`/.exec(line)?.[1] ?? (line.startsWith("## ") ? undefined : folder);
    const file = /^\| `(.*?)` \|/.exec(line)?.[1];
    if (folder !== undefined && file) named.push(folder + file);
  }
  assert.deepEqual(named.sort(), files.sort());
});

test("files of the crate that documents name exist", () => {
  const ROOT = join(DOCS, "..");
  const internals = readdirSync(join(DOCS, "internals")).map((name) => `docs/internals/${name}`);
  const gone = [];
  for (const page of ["ARCHITECTURE.md", "CONTRIBUTING.md", "COMPAT.md", "bench/decisions.md", "wasm-pack.toml", ...internals]) {
    for (const [name] of readFileSync(join(ROOT, page), "utf8").matchAll(/(?<![\w/])(?:js\/)?src\/[\w/]+\.(?:rs|ts)\b/g)) {
      if (!existsSync(join(ROOT, name))) gone.push(`${page}: ${name}`);
    }
  }
  assert.deepEqual(gone, []);
});

test("an outbox keeps unsent measurements and sends each once", async () => {
  const { openOutbox } = await example("outbox.mjs");
  const arrived = [];
  let online = false;
  const send = async (rows) => {
    if (!online) throw new Error("offline");
    arrived.push(...rows.map((row) => row.n));
  };
  const outbox = await openOutbox("telemetry", send, { storage: "memory" });
  for (let n = 0; n < 2500; n++) await outbox.record(n % 3 === 0 ? "engine" : "brake", { n });
  await assert.rejects(outbox.flush(), /offline/);
  assert.equal(await outbox.pending(), 2500);
  online = true;
  assert.equal(await outbox.flush(), 2500);
  assert.deepEqual(arrived.toSorted((a, b) => a - b), Array.from({ length: 2500 }, (_, n) => n));
  assert.equal(await outbox.pending(), 0);
  await outbox.close();
});

test("a chart of a typed collection is ready whether or not there are rows", async () => {
  const { code } = await transform(readFileSync(join(GUIDES, "typed.ts"), "utf8"), { loader: "ts" });
  const { chartOf } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const db = await open("typed", { storage: "memory" });
  assert.deepEqual(await chartOf(db, 7), { at: new Float64Array(), temp: new Float64Array(), warmest: -Infinity, means: [] });
  await db.collection("weather").insertMany([20, 22].map((temp, i) => ({ at: new Date(i), station: { id: 7, site: "A" }, temp })));
  assert.deepEqual(await chartOf(db, 7), { at: Float64Array.of(0, 1), temp: Float64Array.of(20, 22), warmest: 22, means: [{ _id: { site: "A" }, mean: 21 }] });
  await db.close();
});

test("a table for other programs comes back as it was", async () => {
  const { load, respond, toDuckDB } = await example("arrow.mjs");
  const db = await open("tables", { storage: "memory" });
  const [weather, copy] = await Promise.all(["weather", "copy"].map((name) => db.createCollection(name, { timeseries: { timeField: "at", metaField: "station" } })));
  await weather.insertMany(["roof", "cellar"].flatMap((station, s) => Array.from({ length: 30 }, (_, i) => ({ at: new Date(i * 60_000), station, temp: s * 10 + i }))));
  const response = await respond(weather, "roof");
  assert.equal(response.headers.get("content-type"), "application/vnd.apache.arrow.stream");
  assert.equal(await load(copy, response), 30);
  assert.deepEqual(await copy.find().sort({ at: 1 }).toArray(), await weather.find({ station: "roof" }).sort({ at: 1 }).toArray());
  const taken = [];
  await toDuckDB({ insertArrowFromIPCStream: async (bytes, options) => void taken.push(tableFromIPC(bytes).getChild("temp").get(29), options) }, weather, "cellar");
  assert.deepEqual(taken, [39, { name: "weather", create: true }]);
  await db.close();
});

test("charts show the newest values, means, and a line per station", async () => {
  const { lines, means, newestOfEach } = await example("charts.mjs");
  const db = await open("charts", { storage: "memory" });
  const weather = await db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } });
  await weather.insertMany(["roof", "cellar"].flatMap((station, s) => Array.from({ length: 30 }, (_, i) => ({ at: new Date(i * 60_000), station, temp: s * 10 + i }))));
  assert.deepEqual((await newestOfEach(weather)).map(({ station, temp }) => [station, temp]).sort(), [["cellar", 39], ["roof", 29]]);
  assert.deepEqual(await means(weather, "roof"), [Float64Array.of(0, 900_000), Float64Array.of(7, 22)]);
  assert.deepEqual(await means(weather, "attic"), [new Float64Array(), new Float64Array()]);
  const { labels, tables } = await lines(weather, new Date(28 * 60_000));
  const at = Float64Array.of(28 * 60_000, 29 * 60_000);
  assert.deepEqual(new Map(labels.map((label, i) => [label, tables[i]])), new Map([["roof", [at, Float64Array.of(28, 29)]], ["cellar", [at, Float64Array.of(38, 39)]]]));
  await db.close();
});

test("a reading that a device sends again replaces the first one", async () => {
  const { openReadings, receive } = await example("resends.mjs");
  const readings = await openReadings({ storage: "memory" });
  const points = [{ time: 0, channel: 1, value: 20 }, { time: 0, channel: 2, value: 30 }, { time: 1000, channel: 1, value: 21 }];
  await receive(readings, { sensor: "s7", points });
  await receive(readings, { sensor: "s7", points: [{ ...points[1], value: 31 }, points[2], { time: 2000, channel: 1, value: 22 }] });
  const found = await readings.find().sort({ at: 1, channel: 1 }).toArray();
  assert.deepEqual(found.map(({ at, channel, value }) => [+at, channel, value]), [[0, 1, 20], [0, 2, 31], [1000, 1, 21], [2000, 1, 22]]);
});

test("measurements recorded during a send stay for the next one", async () => {
  const { openOutbox } = await example("outbox.mjs");
  const batches = [];
  const send = async (rows) => {
    batches.push(rows.map((row) => row.n));
    if (batches.length === 1) await outbox.record("engine", { n: "late" });
  };
  const outbox = await openOutbox("telemetry", send, { storage: "memory" });
  await outbox.record("engine", { n: "early" });
  assert.equal(await outbox.flush(), 2);
  assert.deepEqual(batches, [["early"], ["late"]]);
  await outbox.close();
});

test("exported and imported buckets have the same measurements", async () => {
  const { exportBuckets, importBuckets } = await example("exchange.mjs");
  const timeseries = { timeField: "at", metaField: "room" };
  const [from, to] = [await open("from", { storage: "memory" }), await open("to", { storage: "memory" })];
  const rooms = await from.createCollection("rooms", { timeseries });
  const rows = Array.from({ length: 3000 }, (_, i) => ({ at: new Date(i * 1000), room: `r${i % 2}`, n: i, ...(i % 7 === 0 && { text: "x" }) }));
  await rooms.insertMany(rows);
  const parts = [];
  for await (const bucket of exportBuckets(from, "rooms")) parts.push(bucket);
  await to.createCollection("rooms", { timeseries });
  assert.equal(await importBuckets(to, "rooms", Buffer.concat(parts)), parts.length);
  const all = (db) => db.collection("rooms").find().sort({ n: 1 }).toArray();
  assert.deepEqual(await all(to), await all(from));
  assert.equal((await all(to)).length, 3000);
  await assert.rejects(importBuckets(to, "rooms", Buffer.concat(parts)), { message: /^bucket 0: /, code: 11000 });
  await Promise.all([from.close(), to.close()]);
});

// Opening a stored database and the first query: `fill` stores it, `ask` opens it, `bare` reads as many entries of
// IndexedDB without timepail.

import { open } from "timepail";
import { SERIES, readings } from "./data.js";

const NAME = "opening";
const ROWS = 100_000;
/** The number of commits, with a row per series each, that stay in the journal. */
const UNFOLDED = 300;
const START = Date.UTC(2024, 0, 1);
const timeseries = { timeField: "at", metaField: "sensor" };

const documents = (count, start) => readings(count, { start }).map(({ sensor, ...rest }) => ({ ...rest, sensor: { id: sensor, half: sensor < "s5" ? 0 : 1 } }));

/** Buckets of 100 000 rows, a user's index, and unfolded rows from when the browser ended. */
async function fill() {
  const db = await open(NAME, { storage: "indexeddb" });
  const points = await db.createCollection("points", { timeseries });
  await points.createIndex({ "sensor.half": 1, at: 1 });
  const rows = documents(ROWS, START);
  for (let at = 0; at < ROWS; at += 1000) await points.insertMany(rows.slice(at, at + 1000), { ordered: false });
  await db.flush();
  const late = documents(UNFOLDED * SERIES, START + (ROWS / SERIES) * 1000);
  for (let at = 0; at < late.length; at += SERIES) await points.insertMany(late.slice(at, at + SERIES), { ordered: false });
}

/** The last hundred rows of one series. */
async function ask() {
  const loaded = performance.now();
  const db = await open(NAME, { storage: "indexeddb" });
  const opened = performance.now();
  const points = db.collection("points");
  const found = await points.find({ "sensor.id": "s3", "sensor.half": 0 }).sort({ at: -1 }).limit(100).toArray();
  const answered = performance.now();
  const last = START + (ROWS / SERIES + UNFOLDED - 1) * 1000;
  if (found.length !== 100 || found[0].at.getTime() !== last || found[99].at.getTime() !== last - 99_000) throw new Error("wrong answer");
  const again = performance.now();
  await points.find({ "sensor.id": "s4", "sensor.half": 0 }).sort({ at: -1 }).limit(100).toArray();
  const halves = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".wasm")).length;
  return { loaded, opened: opened - loaded, answered: answered - loaded, navigated: answered, again: performance.now() - again, halves };
}

/** The host's own share: opening the database and reading its first entries. */
async function bare() {
  const request = (r) => new Promise((resolve, reject) => Object.assign(r, { onsuccess: () => resolve(r.result), onerror: () => reject(r.error) }));
  const loaded = performance.now();
  const db = await request(indexedDB.open(`timepail:${NAME}`, 1));
  const opened = performance.now();
  const entries = await request(db.transaction("entries").objectStore("entries").getAll(undefined, 10));
  if (entries.length !== 10) throw new Error("wrong answer");
  return { loaded, opened: opened - loaded, answered: performance.now() - loaded };
}

globalThis.tasks = { fill, ask, bare };

// The rows of `files.mjs` inserted in process, over a file of its own: as columns, and as documents. Prints milliseconds as JSON.

import { openFile } from "../../js/dist/file.js";
import { columnsOf, rowsOf } from "./rows.mjs";

const [, , file, count] = process.argv;
const BATCH = 10_000;
const timeseries = { timeField: "time", metaField: "station" };
await using db = await openFile(file);
const times = {};
for (const [name, insert] of Object.entries({
  insertColumns: (c, rows) => c.insertColumns(columnsOf(rows), { ordered: false }),
  insertMany: (c, rows) => c.insertMany(rows, { ordered: false }),
})) {
  const collection = await db.createCollection(name, { timeseries });
  const all = [...rowsOf(Number(count))];
  const start = performance.now();
  for (let at = 0; at < all.length; at += BATCH) await insert(collection, all.slice(at, at + BATCH));
  await db.flush();
  times[name] = performance.now() - start;
}
console.log(JSON.stringify(times));

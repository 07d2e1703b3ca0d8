// Exports a collection to files: its buckets as they are stored, its options, or its rows.

import { EJSON, Int32, Long } from "bson";
import { AS_STORED, toBson } from "./bson-file.js";
import { datasets } from "./datasets.js";
import { say } from "./feedback.js";
import { bytes, number } from "./format.js";
import { breathe, follow } from "./progress.js";
import { csvHead, csvLine, jsonLine } from "./rows-file.js";
import { workspace } from "./workspace.js";

const BATCH = 1000;

/** `system.buckets.<name>.bson`, as mongodump calls it. */
export async function exportBuckets(name) {
  const { timeseries } = await workspace.db.command({ collStats: name });
  const buckets = workspace.db.collection(`system.buckets.${name}`, AS_STORED).find({}, { batchSize: BATCH });
  await write(`system.buckets.${name}.bson`, "buckets", buckets, timeseries.bucketCount, toBson);
}

/** `<name>.metadata.json`: the options and indexes, from which mongorestore creates the collection. */
export async function exportOptions(name) {
  const [{ options }] = await workspace.db.listCollections({ name }).toArray();
  const { timeseries, expireAfterSeconds, collation } = options;
  const spans = ["bucketMaxSpanSeconds", "bucketRoundingSeconds"].filter((field) => timeseries[field] !== undefined);
  const exact = { ...timeseries, ...Object.fromEntries(spans.map((field) => [field, new Int32(timeseries[field])])) };
  const indexes = (await workspace.db.collection(name).indexes()).map((index) => ({ ...index, v: new Int32(2) }));
  const metadata = {
    options: {
      timeseries: exact,
      ...(expireAfterSeconds !== undefined && { expireAfterSeconds: Long.fromNumber(expireAfterSeconds) }),
      ...(collation && { collation }),
    },
    indexes,
    collectionName: name,
    type: "timeseries",
  };
  save(`${name}.metadata.json`, [EJSON.stringify(metadata, { relaxed: false })], "application/json");
}

export async function exportRows(name, kind) {
  const { timeField, metaField } = datasets[name].timeseries;
  const rows = workspace.db.collection(name).find({}, { batchSize: 10 * BATCH }).sort({ [timeField]: 1 });
  const { timeseries } = await workspace.db.command({ collStats: name });
  if (kind === "ndjson") return write(`${name}.ndjson`, "rows", rows, timeseries.numMeasurements, jsonLine);
  const fields = await fieldsOf(name, timeField, metaField);
  return write(`${name}.csv`, "rows", rows, timeseries.numMeasurements, (row) => csvLine(row, fields), csvHead(fields));
}

/** The time, the metadata, and every field that any bucket has. */
async function fieldsOf(name, timeField, metaField) {
  const fields = new Set([timeField, metaField].filter(Boolean));
  for await (const { control } of workspace.db.collection(`system.buckets.${name}`).find({}, { projection: { "control.min": 1 } })) {
    for (const field of Object.keys(control.min)) fields.add(field);
  }
  return [...fields];
}

/** Writes the results of a cursor into a file, and shows the progress bar. */
async function write(fileName, what, cursor, total, toPart, head) {
  let count = 0;
  const parts = head ? [head] : [];
  const { cancelled } = await follow(`Export of ${fileName}`, async (signal, progress) => {
    for await (const document of cursor) {
      if (signal.aborted) return;
      parts.push(toPart(document));
      if (++count % BATCH === 0) {
        parts.splice(0, parts.length, new Blob(parts)); // A blob need not stay in memory.
        progress(Math.min(1, count / total), `${number(count)} ${what}`);
        await breathe();
      }
    }
  });
  if (cancelled) return say("Cancelled: nothing was written.");
  const size = save(fileName, parts, "application/octet-stream");
  say(`${number(count)} ${what} in ${fileName}, ${bytes(size)}.`);
}

/** Passes a file to the browser's downloads; returns its size. */
function save(fileName, parts, type) {
  const blob = new Blob(parts, { type });
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: fileName });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return blob.size;
}

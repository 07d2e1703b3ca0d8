// Stores the demo's data sets and prints the bytes that a measurement takes in bucket documents, compressed and plain.
//
//   node bench/sizes.mjs [--points 100000]

import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { open } from "../js/dist/node.js";
import { JS } from "../js/scripts/steps.mjs";
import { datasets } from "../www/datasets.js";
import { FIRST_TIME, addSensorPoints } from "../www/sensors.js";

const { values } = parseArgs({ options: { points: { type: "string", default: "100000" } } });
const total = Number(values.points);

// The demo gets the files of the npm package from its server.
globalThis.fetch = async (url) => new Response(readFileSync(join(JS, "node_modules/vega-datasets/data", basename(url))));

async function stored(name, bucketVersion) {
  const { timeseries, documents } = datasets[name];
  const db = await open("sizes", { storage: "memory", bucketVersion });
  const collection = await db.createCollection(name, { timeseries });
  if (documents) await collection.insertMany(await documents());
  else await addSensorPoints(collection, { total, start: FIRST_TIME, signal: new AbortController().signal, onBatch() {} });
  await db.command({ flush: 1 });
  const stats = await db.command({ collStats: name });
  await db.close();
  return { rows: Number(stats.timeseries.numMeasurements), buckets: Number(stats.timeseries.bucketCount), bytes: Number(stats.size) };
}

console.log(`${"data set".padEnd(12)}${"rows".padStart(10)}${"buckets".padStart(9)}${"compressed".padStart(13)}${"plain".padStart(8)}  bytes a measurement`);
for (const name of Object.keys(datasets)) {
  const [compressed, plain] = [await stored(name, 2), await stored(name, 1)];
  const each = ({ bytes, rows }) => (bytes / rows).toFixed(2);
  console.log(
    `${name.padEnd(12)}${String(compressed.rows).padStart(10)}${String(compressed.buckets).padStart(9)}${each(compressed).padStart(13)}${each(plain).padStart(8)}`,
  );
}

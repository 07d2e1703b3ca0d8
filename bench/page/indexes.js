// The cost of indexes: the same measurements with the default index and with two more, and the time to create one.

import { open } from "timepail";
import { readings } from "./data.js";

const timeseries = { timeField: "at", metaField: "sensor" };
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** A tenth of `rows`. */
export async function indexes({ rows: tenfold, rounds, log }) {
  const rows = tenfold / 10;
  const docs = readings(rows).map(({ at, sensor, ...fields }) => ({ at, sensor: { id: sensor, half: String(sensor) < "s5" ? 0 : 1 }, ...fields }));
  const field = Object.keys(docs[0]).find((name) => name !== "at" && name !== "sensor");
  const times = { plain: [], indexed: [], build: [] };
  for (let round = 0; round < rounds; round++) {
    for (const kind of round % 2 ? ["plain", "indexed"] : ["indexed", "plain"]) {
      const db = await open("indexes", { storage: "indexeddb", durability: "relaxed" });
      const points = await db.createCollection("points", { timeseries });
      if (kind === "indexed") await points.createIndexes([{ key: { "sensor.half": 1, at: 1 } }, { key: { [field]: 1 } }]);
      const begin = performance.now();
      for (let row = 0; row < docs.length; row += 1000) await points.insertMany(docs.slice(row, row + 1000), { ordered: false });
      await db.flush();
      times[kind].push(performance.now() - begin);
      if (kind === "plain") {
        const begin = performance.now();
        await points.createIndex({ [field]: 1 });
        times.build.push(performance.now() - begin);
      }
      await db.close();
      await new Promise((resolve, reject) => {
        Object.assign(indexedDB.deleteDatabase("timepail:indexes"), { onsuccess: resolve, onerror: reject });
      });
    }
    log(`round ${round + 1}`);
  }
  const [plain, indexed, build] = ["plain", "indexed", "build"].map((kind) => median(times[kind]));
  return [
    { task: `${rows} rows in and settled, default index alone`, value: plain, unit: "ms" },
    { task: "the same with two indexes more", value: indexed, unit: "ms", ratio: indexed / plain, of: "the default index alone" },
    { task: "an index on a field over all of them", value: build, unit: `ms: ${(rows / build / 1000).toFixed(1)} M rows a second` },
  ];
}

// Inserts the example data: files of measurements, and any number of generated points.

import { show } from "./collection.js";
import { datasets } from "./datasets.js";
import { say, unlessBusy } from "./feedback.js";
import { duration, number, short } from "./format.js";
import { follow } from "./progress.js";
import { addSensorPoints, FIRST_TIME } from "./sensors.js";
import { all, lastOf, workspace } from "./workspace.js";

async function load(name) {
  const collection = workspace.db.collection(name);
  const documents = await datasets[name].documents();
  await collection.deleteMany({}); // A second click replaces the data, because equal measurements would be stored twice.
  const start = performance.now();
  const { insertedCount } = await collection.insertMany(documents, { ordered: false });
  const ms = performance.now() - start;
  lastOf(name).insert = { rows: insertedCount, ms };
  await workspace.db.flush(); // They are stored already. This folds the journal into buckets now, so that the page can show them.
  say(`${number(insertedCount)} measurements inserted in ${duration(ms)}.`);
  await show(name);
}

async function addSensors(total) {
  const collection = workspace.db.collection("sensors");
  const newest = await collection.findOne({}, { sort: { at: -1 } });
  const { result, cancelled } = await follow("Sensor points added", (signal, progress) =>
    addSensorPoints(collection, {
      total,
      start: newest ? newest.at.getTime() + 10_000 : FIRST_TIME,
      signal,
      onBatch: ({ rows, ms }) => progress(rows / total, `${number(rows)}${ms > 0 ? ` at ${short((rows / ms) * 1000)} points/s` : ""}`),
    }),
  );
  lastOf("sensors").insert = result;
  await workspace.db.flush();
  say(`${cancelled ? "Cancelled: " : ""}${number(result.rows)} points inserted in ${duration(result.ms)}.`);
  await show("sensors");
}

export function setUpFill() {
  for (const button of all("[data-load]")) button.addEventListener("click", () => unlessBusy(() => load(button.dataset.load)));
  for (const button of all("[data-add]")) button.addEventListener("click", () => unlessBusy(() => addSensors(Number(button.dataset.add))));
}

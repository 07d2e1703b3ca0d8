// Devices that send readings again if no answer came.

import { open } from "timepail";

/** Readings of sensors with several channels. A channel of a sensor has one value at each time; a reading that arrives again replaces the earlier one. */
export async function openReadings(options) {
  const db = await open("plant", options);
  return db.createCollection("readings", {
    timeseries: { timeField: "at", metaField: "sensor" },
    dedupe: { by: ["channel"], keep: "last" },
  });
}

/** Takes what a device sends after it was offline: it may send a part of it for the second time. */
export async function receive(readings, message) {
  const { sensor, points } = message;
  await readings.insertMany(points.map(({ time, channel, value }) => ({ at: new Date(time), sensor, channel, value })));
}

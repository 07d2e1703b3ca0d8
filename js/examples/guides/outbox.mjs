// A telemetry outbox: records stay on the device until the server has them.

import { open } from "timepail";

/**
 * Opens an outbox. `send(rows)` delivers rows and rejects if they did not arrive. A row can arrive twice if the page closes between
 * delivery and deletion; such rows have the same `_id`.
 */
export async function openOutbox(name, send, options = {}) {
  const db = await open(name, { durability: "strict", ...options });
  const rows = await db.createCollection("outbox", {
    timeseries: { timeField: "at", metaField: "source" },
    expireAfterSeconds: 14 * 86_400, // give up after two weeks
    maxBytes: 20_000_000, // and limit the space on the device
    generateIds: true,
  });

  /** Sends all rows, oldest first, a thousand at a time; returns how many. Rows recorded meanwhile are kept until they are sent, too. */
  async function flush() {
    let sent = 0;
    for (;;) {
      const batch = await rows.find().sort({ at: 1 }).limit(1000).toArray();
      if (batch.length === 0) return sent;
      await send(batch);
      await rows.deleteMany({ at: { $lte: batch.at(-1).at }, _id: { $in: batch.map((row) => row._id) } });
      sent += batch.length;
    }
  }

  return {
    record: (source, values) => rows.insertOne({ at: new Date(), source, ...values }),
    // One tab sends at a time; the others then find nothing left.
    flush: () => (globalThis.navigator?.locks ? navigator.locks.request(`${name}-outbox`, flush) : flush()),
    pending: () => rows.countDocuments(),
    close: () => db.close(),
  };
}

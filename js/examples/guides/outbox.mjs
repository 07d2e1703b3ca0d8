// A telemetry outbox: what is recorded is kept on the device until the server has it.

import { open } from "timepail";

/**
 * Opens an outbox. `send(rows)` delivers rows and rejects where they did not arrive; it may get a row twice, if the page ends between
 * delivery and deletion, and knows it by its `_id`.
 */
export async function openOutbox(name, send, options = {}) {
  const db = await open(name, { durability: "strict", ...options });
  const rows = await db.createCollection("outbox", {
    timeseries: { timeField: "at", metaField: "source" },
    expireAfterSeconds: 14 * 86_400, // what could not be sent in two weeks
    maxBytes: 20_000_000, // and never more than the device can spare
    generateIds: true,
  });

  /** Sends the oldest rows, a thousand at a time; answers how many. What is recorded meanwhile stays for the next time. */
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
    // One tab sends; the others find nothing left.
    flush: () => (globalThis.navigator?.locks ? navigator.locks.request(`${name}-outbox`, flush) : flush()),
    pending: () => rows.countDocuments(),
    close: () => db.close(),
  };
}

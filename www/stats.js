// The tiles: what collStats says about a collection, and how long the last insert and query took.

import { bytes, duration, number, short } from "./format.js";

/** Shows the tiles. `last` is `{ insert?, query? }`, each `{ rows, ms }`. Resolves to the number of measurements. */
export async function showStats(db, name, { fields }, last) {
  const { storageSize, journalSize, timeseries } = await db.command({ collStats: name });
  const { numMeasurements: measurements, bucketCount: buckets } = timeseries;
  const count = Object.keys(fields).length;
  const values = count === 1 ? "one value" : `${count} values`;
  const journal = journalSize > 0 ? `${bytes(journalSize)} of it journal` : "all of it buckets";
  tile("measurements", number(measurements), `of ${values} each`);
  tile("buckets", number(buckets), measurements > 0 && `${number(measurements / buckets)} measurements each`);
  tile("bytes-a-point", measurements > 0 && number(storageSize / measurements, 1), measurements > 0 && `time and ${values}`);
  tile("stored", measurements > 0 && bytes(storageSize), measurements > 0 && journal);
  showLast(last);
  return measurements;
}

/** Shows the two tiles that need no command. */
export function showLast({ insert, query }) {
  tile("insert-rate", insert && `${short((insert.rows / insert.ms) * 1000)}/s`, insert && `${number(insert.rows)} points in ${duration(insert.ms)}`);
  tile("query-time", query && duration(query.ms), query && `${number(query.rows)} rows`);
}

function tile(id, value, note) {
  const figure = document.getElementById(id);
  figure.textContent = value || "–";
  figure.nextElementSibling.textContent = note || "";
}

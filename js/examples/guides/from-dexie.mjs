// Copies a Dexie table with one record per point into a time-series collection.

/**
 * Copies the records of `table`, in the order of the index `timeField`, into `collection`. `toMeasurement` converts
 * a record to a measurement: the time to a Date, the name of the source to the metaField. Returns the number of records.
 */
export async function copyTable(table, collection, timeField, toMeasurement) {
  const PAGE = 10_000;
  let copied = 0;
  let after = { time: undefined, skip: 0 };
  for (;;) {
    // A page begins at the last time of the previous page. The first `skip` records with that time were already copied.
    const from = after.time === undefined ? table.orderBy(timeField) : table.where(timeField).aboveOrEqual(after.time);
    const records = await from.offset(after.skip).limit(PAGE).toArray();
    if (records.length === 0) return copied;
    await collection.insertMany(records.map(toMeasurement), { ordered: false });
    copied += records.length;
    const time = records.at(-1)[timeField];
    const alike = records.filter((record) => indexedDB.cmp(record[timeField], time) === 0).length;
    const isSameTime = after.time !== undefined && indexedDB.cmp(after.time, time) === 0;
    after = { time, skip: isSameTime ? after.skip + alike : alike };
  }
}

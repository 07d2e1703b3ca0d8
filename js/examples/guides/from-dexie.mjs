// Moves a Dexie table, one record a point, into a time-series collection.

/**
 * Copies the records of `table`, in the order of the index `timeField`, into `collection`. `toMeasurement` makes a measurement of a
 * record: the time as a Date, what names the source as the metaField. Answers how many.
 */
export async function copyTable(table, collection, timeField, toMeasurement) {
  const PAGE = 10_000;
  let copied = 0;
  let after = { time: undefined, skip: 0 };
  for (;;) {
    // A page begins where the one before has ended. Records of that very time are there again, as many as `skip` says.
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

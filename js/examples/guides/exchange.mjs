// Exports the buckets of a collection to a file and imports them again, in the server's form that mongodump writes and mongorestore reads.

import { deserialize, serialize } from "bson";

/** The buckets of a collection, as consecutive BSON documents. */
export async function* exportBuckets(db, name) {
  // Numbers keep their stored types.
  const buckets = db.collection(`system.buckets.${name}`, { promoteValues: false, bsonRegExp: true });
  for await (const bucket of buckets.find()) yield serialize(bucket);
}

/** Imports the buckets of such a file into a collection with the same `timeseries` options. Returns how many there were. */
export async function importBuckets(db, name, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let documents = [];
  let count = 0;
  const insert = async () => {
    if (documents.length === 0) return;
    const { n, writeErrors } = await db.command({ insert: `system.buckets.${name}`, documents, unsafeBucketWrites: true });
    if (writeErrors) throw Object.assign(new Error(`bucket ${count + writeErrors[0].index}: ${writeErrors[0].errmsg}`), { code: writeErrors[0].code });
    count += n;
    documents = [];
  };
  for (let at = 0; at < bytes.length; ) {
    const length = view.getInt32(at, true);
    documents.push(deserialize(bytes.subarray(at, at + length), { promoteValues: false, bsonRegExp: true }));
    at += length;
    if (documents.length === 100) await insert();
  }
  await insert();
  return count;
}

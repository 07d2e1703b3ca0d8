// Buckets of a collection as a file, and back: the server's own form, which mongodump writes and mongorestore reads.

import { deserialize, serialize } from "bson";

/** The buckets of a collection, one BSON document after the other. */
export async function* exportBuckets(db, name) {
  // Numbers keep the types that they are stored with.
  const buckets = db.collection(`system.buckets.${name}`, { promoteValues: false, bsonRegExp: true });
  for await (const bucket of buckets.find()) yield serialize(bucket);
}

/** Puts the buckets of such a file into a collection with the same `timeseries` options. Answers how many. */
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

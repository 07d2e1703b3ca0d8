// `timepail export --dump`: a folder as mongodump writes it for time-series collections.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { EJSON, type Document } from "bson";
import type { Database } from "../../index.js";
import { bsonWriter } from "../formats/bson-write.js";
import { checkTarget, gzipped, writeFileWhole, type Bytes } from "./sink.js";

export interface DumpOptions {
  /** The file of the database. */
  file: string;
  folder: string;
  gzip: boolean;
  force: boolean;
  signal: AbortSignal;
  /** Called for each piece that is written, with its number of buckets and their total number. */
  wrote: (buckets: number, all: number) => void;
}

/** Collection options that a server does not know, and refuses. */
const OWN_OPTIONS = ["dedupe", "maxBytes"];

/** Writes buckets and options of collections. It first folds the journal, so that all measurements are in buckets. */
export async function dump(db: Database, collections: readonly Document[], options: DumpOptions): Promise<void> {
  const { folder, gzip, force, file, signal, wrote } = options;
  const inside = join(folder, db.databaseName);
  const ending = gzip ? ".gz" : "";
  const files = collections.map((listed) => {
    const name = escaped(listed["name"]);
    return { listed, buckets: join(inside, `system.buckets.${name}.bson${ending}`), metadata: join(inside, `${name}.metadata.json${ending}`) };
  });
  for (const { buckets, metadata } of files) for (const path of [buckets, metadata]) checkTarget(path, force, file);
  mkdirSync(inside, { recursive: true });
  await db.flush();
  let all = 0;
  for (const { listed } of files) all += Number((await db.command({ collStats: listed["name"] }))["timeseries"].bucketCount);
  for (const { listed, buckets, metadata } of files) {
    const name: string = listed["name"];
    const write = (path: string, bytes: Bytes): Promise<void> => writeFileWhole(path, gzip ? gzipped(bytes) : bytes, { force, signal });
    const collection = db.collection(`system.buckets.${name}`, { promoteValues: false, bsonRegExp: true });
    await write(buckets, bsonWriter.write!(collection.find({}, { signal }), { collection }, (buckets) => wrote(buckets, all)));
    await write(metadata, text(EJSON.stringify(await metadataOf(db, listed), { relaxed: false })));
  }
}

/** The metadata from which mongorestore creates a collection. It ignores unknown fields, such as `timepail`. */
async function metadataOf(db: Database, { name, options, info }: Document): Promise<Document> {
  const known = Object.entries(options as Document);
  const own = known.filter(([option]) => OWN_OPTIONS.includes(option));
  const uuid = info?.uuid?.toString("hex").replaceAll("-", "");
  return {
    options: Object.fromEntries(known.filter(([option]) => !OWN_OPTIONS.includes(option))),
    indexes: await db.collection(name).listIndexes().toArray(),
    ...(uuid && { uuid }),
    collectionName: name,
    type: "timeseries",
    ...(own.length > 0 && { timepail: Object.fromEntries(own) }),
  };
}

/** Escapes the name of a collection for a file name, as the tools of MongoDB do. */
export function escaped(name: string): string {
  const others = encodeURIComponent(name).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return others.replaceAll(/%(24|26|2B|3A|3D|40)/g, (code) => decodeURIComponent(code));
}

async function* text(content: string): Bytes {
  yield new TextEncoder().encode(content);
}

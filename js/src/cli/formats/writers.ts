// The formats that `export` and `query` write.

import { bsonWriter } from "./bson-write.js";
import { csvWriter, tsvWriter } from "./csv-write.js";
import type { FileFormat } from "./model.js";
import { jsonWriter, ndjsonWriter } from "./ndjson-write.js";

/** A row for each format. */
export const WRITERS: readonly FileFormat[] = [csvWriter, tsvWriter, ndjsonWriter, jsonWriter, bsonWriter];

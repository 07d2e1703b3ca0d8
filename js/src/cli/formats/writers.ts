// The formats that `export` and `query` write.

import { ARROW } from "./arrow.js";
import { bsonWriter } from "./bson-write.js";
import { csvWriter, tsvWriter } from "./csv-write.js";
import type { FileFormat } from "./model.js";
import { jsonWriter, ndjsonWriter } from "./ndjson-write.js";
import { PARQUET } from "./parquet.js";

/** A row for each format. */
export const WRITERS: readonly FileFormat[] = [csvWriter, tsvWriter, ndjsonWriter, jsonWriter, bsonWriter, ARROW, PARQUET];

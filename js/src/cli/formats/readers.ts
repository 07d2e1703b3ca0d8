// The formats that `import` reads.

import { Usage } from "../command.js";
import { ARROW } from "./arrow.js";
import { BSON_FILE } from "./bson-read.js";
import { CSV } from "./csv-read.js";
import type { FileFormat, InputFile } from "./model.js";
import { NDJSON } from "./ndjson-read.js";
import { PARQUET } from "./parquet.js";

/** The formats. If neither an option nor the name of a file decides, the first format that matches its beginning reads it; the fallback is delimited text. */
export const READERS: readonly FileFormat[] = [CSV, NDJSON, BSON_FILE, ARROW, PARQUET];

/** A name without the ending of gzip. */
export const bareName = (name: string): string => name.replace(/\.gz$/i, "");

/** Whether a name ends like a file of one of the formats. */
export const hasKnownEnding = (name: string): boolean => READERS.some(({ endings }) => endings.some((ending) => bareName(name).toLowerCase().endsWith(ending)));

/** The format of a file. */
export function readerOf(file: InputFile, chosen: string | undefined): FileFormat {
  if (chosen !== undefined) {
    const format = READERS.find(({ name }) => name === chosen);
    if (!format) throw new Usage(`Unknown format ${chosen}; the formats are ${READERS.map(({ name }) => name).join(", ")}`);
    return format;
  }
  const bare = bareName(file.name).toLowerCase();
  return READERS.find(({ endings }) => endings.some((ending) => bare.endsWith(ending))) ?? READERS.find(({ matches }) => matches?.(file.beginning)) ?? CSV;
}

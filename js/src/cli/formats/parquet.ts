// Reads and writes Apache Parquet.

import { openDocuments, type Piece } from "../import/documents.js";
import { BATCH_ROWS } from "../import/limits.js";
import type { FileFormat, InputFile } from "./model.js";

/** The first and the last bytes of a file. */
const MAGIC = "PAR1";

async function* read(file: InputFile): AsyncGenerator<Piece> {
  const { documentsOf } = await import("./parquet-file.js");
  let line = 1;
  try {
    for await (const documents of documentsOf(file, BATCH_ROWS)) yield { documents, lines: documents.map(() => line++), bad: [] };
  } catch (error) {
    throw new Error(`${file.name}: ${(error as Error).message}`, { cause: error });
  }
}

export const PARQUET: FileFormat = {
  name: "parquet",
  endings: [".parquet"],
  isBinary: true,
  matches: (beginning) => new TextDecoder("latin1").decode(beginning.subarray(0, MAGIC.length)) === MAGIC,
  open: async (file, options) => ({ about: "Apache Parquet", ...(await openDocuments(read(file), file.name, options)) }),
  async *write(cursor, _options, onRows) {
    const { written } = await import("./parquet-file.js");
    const { bytes, rows } = await written(cursor);
    onRows(rows);
    yield bytes;
  },
};

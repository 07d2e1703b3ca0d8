// Reads and writes Apache Arrow IPC. The library for it is loaded when it is needed.

import { openDocuments, type Piece } from "../import/documents.js";
import { BATCH_ROWS } from "../import/limits.js";
import type { FileFormat, InputFile } from "./model.js";

/** The first bytes of the file format. The stream format begins with a length. */
const MAGIC = "ARROW1";

async function whole(file: InputFile): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of file.bytes()) pieces.push(piece);
  return new Uint8Array(Buffer.concat(pieces));
}

async function* read(file: InputFile): AsyncGenerator<Piece> {
  const { documentsOf } = await import("timepail/arrow");
  const bytes = await whole(file);
  let line = 1;
  try {
    for (const documents of documentsOf(bytes, BATCH_ROWS)) {
      yield { documents, lines: documents.map(() => line++), bad: [] };
    }
  } catch (error) {
    throw new Error(`${file.name} is not a complete file of Apache Arrow: ${(error as Error).message}`, { cause: error });
  }
}

export const ARROW: FileFormat = {
  name: "arrow",
  endings: [".arrow", ".arrows", ".feather"],
  isBinary: true,
  matches: (beginning) => new TextDecoder("latin1").decode(beginning.subarray(0, MAGIC.length)) === MAGIC,
  open: async (file, options) => ({ about: "Apache Arrow", ...(await openDocuments(read(file), file.name, options)) }),
  async *write(cursor, _options, onRows) {
    const { written } = await import("timepail/arrow");
    const { bytes, rows } = await written(cursor, { format: "file" });
    onRows(rows);
    yield bytes;
  },
};

// Reads concatenated BSON documents, as mongodump writes them.

import { deserialize, type Document } from "bson";
import { openDocuments, type Piece } from "../import/documents.js";
import type { FileFormat, InputFile } from "./model.js";

const DOCUMENT_MAX = 16 * 1024 * 1024 + 16 * 1024;
/** Nothing is promoted, so that a number keeps its type: 32 bits, 64 bits or a double. */
const AS_STORED = { promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true };

export const BSON_FILE: FileFormat = {
  name: "bson",
  endings: [".bson"],
  // A length with a zero byte, which does not occur in text, followed by the type of an element.
  matches: (beginning) => beginning.length > 5 && beginning[3] === 0 && beginning[4]! > 0 && beginning[4]! < 32,
  async open(file, options) {
    return { about: "BSON", ...(await openDocuments(documentsOf(file), file.name, options)) };
  },
};

/** The documents of a file, numbered from 1. @throws Error where the file is damaged such that no further document can be found */
export async function* documentsOf(file: InputFile): AsyncGenerator<Piece> {
  let rest = new Uint8Array();
  let start = 0;
  let row = 0;
  for await (const bytes of file.bytes()) {
    const all = new Uint8Array(rest.length + bytes.length);
    all.set(rest);
    all.set(bytes, rest.length);
    const view = new DataView(all.buffer);
    const piece: Piece = { documents: [], lines: [], bad: [] };
    let at = 0;
    while (at + 4 <= all.length) {
      const size = view.getInt32(at, true);
      if (size < 5 || size > DOCUMENT_MAX) {
        yield piece;
        throw new Error(`${file.name} is not valid BSON at byte ${start + at}`);
      }
      if (at + size > all.length) break;
      row++;
      try {
        piece.documents.push(deserialize(all.subarray(at, at + size), AS_STORED) as Document);
        piece.lines.push(row);
      } catch (error) {
        piece.bad.push({ line: row, message: `is not valid BSON: ${(error as Error).message}` });
      }
      at += size;
    }
    rest = all.slice(at);
    start += at;
    yield piece;
  }
  if (rest.length > 0) throw new Error(`${file.name} ends in the middle of a document, at byte ${start + rest.length}`);
}

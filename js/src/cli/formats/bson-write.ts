// Writes concatenated BSON documents, as in a dump.

import { encodeDocument } from "../../bson.js";
import type { Cursor, FileFormat, WriteOptions } from "./model.js";

const PIECE_BYTES = 65_536;

async function* write(cursor: Cursor, _options: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (): Uint8Array => {
    const piece = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      piece.set(part, at);
      at += part.length;
    }
    onRows(parts.length);
    parts = [];
    size = 0;
    return piece;
  };
  for await (const document of cursor) {
    const part = encodeDocument(document);
    parts.push(part);
    size += part.length;
    if (size >= PIECE_BYTES) yield take();
  }
  yield take();
}

export const bsonWriter: FileFormat = { name: "bson", endings: [".bson"], keepsTypes: true, isBinary: true, write };

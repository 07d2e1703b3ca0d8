// Writes Extended JSON: one document per line, or one array.

import { EJSON } from "bson";
import { jsonText } from "./json-text.js";
import type { Cursor, FileFormat, WriteOptions } from "./model.js";
import { Pieces } from "./pieces.js";

/** The text before the first document, before each later one, after the last, and instead of all if there is none. */
interface Frame {
  open: string;
  between: string;
  close: string;
  none: string;
}

function json(name: string, endings: readonly string[], { open, between, close, none }: Frame): FileFormat {
  async function* write(cursor: Cursor, { canonical = false }: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array> {
    const pieces = new Pieces(onRows);
    const text = canonical ? (document: unknown) => EJSON.stringify(document, { relaxed: false }) : jsonText;
    let count = 0;
    for await (const document of cursor) if (pieces.add((count++ > 0 ? between : open) + text(document), 1)) yield pieces.take();
    pieces.add(count > 0 ? close : none, 0);
    yield pieces.take();
  }
  return { name, endings, write };
}

export const ndjsonWriter: FileFormat = json("ndjson", [".ndjson", ".jsonl"], { open: "", between: "\n", close: "\n", none: "" });
export const jsonWriter: FileFormat = json("json", [".json"], { open: "[\n", between: ",\n", close: "\n]\n", none: "[]\n" });

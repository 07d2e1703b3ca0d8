// Reads JSON: one document per line, or an array of documents. Values may be those of Extended JSON, as mongoexport writes them.

import { ArraySplitter, LineSplitter, documentOf, type JsonTexts } from "../import/json-lines.js";
import { openDocuments, type Piece } from "../import/documents.js";
import { decoderOf } from "../import/text.js";
import { Misfit } from "../import/values.js";
import type { FileFormat, InputFile } from "./model.js";

export const NDJSON: FileFormat = {
  name: "ndjson",
  endings: [".ndjson", ".jsonl", ".json"],
  matches: (beginning) => /^[\s\ufeff]*[[{]/.test(new TextDecoder().decode(beginning)),
  async open(file, options) {
    const [kind, pieces] = await splitterOf(file, options.encoding);
    return { about: kind, ...(await openDocuments(pieces, file.name, options)) };
  },
};

async function splitterOf(file: InputFile, encoding: string | undefined): Promise<[string, AsyncGenerator<Piece>]> {
  const decoder = decoderOf(file, encoding);
  const bytes = file.bytes()[Symbol.asyncIterator]();
  let beginning = "";
  for (let next = await bytes.next(); !next.done; next = await bytes.next()) {
    beginning += decoder.push(next.value);
    if (beginning.trim() !== "") break;
  }
  const isArray = beginning.trimStart().startsWith("[");
  const splitter = isArray ? new ArraySplitter() : new LineSplitter();
  async function* pieces(): AsyncGenerator<Piece> {
    yield parsed(splitter.push(beginning));
    for (let next = await bytes.next(); !next.done; next = await bytes.next()) yield parsed(splitter.push(decoder.push(next.value)));
    yield parsed(splitter.push(decoder.end()));
    yield parsed(splitter.end());
  }
  return [isArray ? "a JSON array of documents" : "JSON, one document per line", pieces()];
}

function parsed({ texts, lines }: JsonTexts): Piece {
  const piece: Piece = { documents: [], lines: [], bad: [] };
  for (const [at, text] of texts.entries()) {
    try {
      piece.documents.push(documentOf(text));
      piece.lines.push(lines[at]!);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      piece.bad.push({ line: lines[at]!, message: error.message });
    }
  }
  return piece;
}

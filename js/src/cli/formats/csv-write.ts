// Writes CSV and TSV: a line of names, then a line for each row.

import { FlatRows, cellText } from "./flat.js";
import type { Cursor, FileFormat, WriteOptions } from "./model.js";
import { Pieces } from "./pieces.js";

/** `delimited` text: cells are quoted as RFC 4180 says, lines end with a line feed. Missing values and null are empty; a string without characters is `""`. */
function delimited(name: string, endings: readonly string[], delimiter: string): FileFormat {
  const special = new RegExp(`["\r\n${delimiter}]`);
  const quoted = (text: string): string => (text === "" || special.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (value: unknown): string => {
    if (typeof value === "string") return quoted(value);
    if (value === undefined || value === null) return "";
    if (typeof value === "number") return cellText(value);
    const text = cellText(value);
    return special.test(text) ? quoted(text) : text;
  };
  async function* write(cursor: Cursor, { fields = [], fieldsChosen = false }: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array> {
    const pieces = new Pieces(onRows);
    const rows = new FlatRows(fields, fieldsChosen);
    pieces.add(`${fields.map(quoted).join(delimiter)}\n`, 0);
    for await (const document of cursor) {
      const cells = rows.cells(document);
      let line = "";
      for (let at = 0; at < cells.length; at++) line += at === 0 ? cell(cells[0]) : delimiter + cell(cells[at]);
      // Readers skip empty lines, so a row of one empty cell needs quotes.
      if (pieces.add(`${line === "" ? '""' : line}\n`, 1)) yield pieces.take();
    }
    yield pieces.take();
  }
  return { name, endings, needsFields: true, write };
}

export const csvWriter: FileFormat = delimited("csv", [".csv"], ",");
export const tsvWriter: FileFormat = delimited("tsv", [".tsv"], "\t");

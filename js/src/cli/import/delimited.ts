// Splits delimited text, piece by piece, and reports on which line each record begins. Papa Parse finds the cells.

import Papa from "papaparse";
import type { BadRow } from "../formats/model.js";

/** The maximum length of a record, in characters: a quote that is not closed would otherwise take in the rest of the file. */
const RECORD_MAX = 1_000_000;
/** After an invalid record, the next part that is parsed has this many characters; each part after it is twice as long. */
const CAREFUL = 4096;

export interface Records {
  cells: string[][];
  /** The line on which each of them begins. */
  lines: number[];
  bad: BadRow[];
}

/** The character that separates the cells of the first line most often. */
export function delimiterOf(line: string): string {
  const bare = line.replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t", "|"].map((delimiter) => [bare.split(delimiter).length, delimiter] as const);
  return counts.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

/** Reads records from pieces of text: `push` returns complete records, `end` the rest. Empty lines are skipped. */
export class DelimitedReader {
  readonly #delimiter: string;
  readonly #newline: "\n" | "\r";
  /** Whether a carriage return before a newline belongs to it. */
  readonly #hasReturns: boolean;
  #rest = "";
  #line = 1;

  /** @param beginning - tells how lines end */
  constructor(delimiter: string, beginning: string) {
    this.#delimiter = delimiter;
    this.#newline = beginning.includes("\r") && !beginning.includes("\n") ? "\r" : "\n";
    this.#hasReturns = beginning.includes("\r\n");
  }

  push(text: string): Records {
    return this.#take(this.#rest + text, false);
  }

  end(): Records {
    return this.#take(this.#rest, true);
  }

  #take(text: string, isEnd: boolean): Records {
    const records: Records = { cells: [], lines: [], bad: [] };
    let start = 0;
    let size = text.length;
    while (start < text.length) {
      const end = Math.min(text.length, start + size);
      const isLast = isEnd && end === text.length;
      const part = text.slice(start, end);
      const { rows, length, problem } = this.#parse(part, isLast);
      this.#add(rows, records, part.includes('"'));
      start += length;
      if (problem !== undefined || (rows.length === 0 && part.length > RECORD_MAX)) {
        const newline = text.indexOf(this.#newline, start);
        if (newline < 0 && !isEnd && problem === undefined) break;
        records.bad.push({ line: this.#line++, message: problem ?? "a quote is not closed" });
        start = newline < 0 ? text.length : newline + 1;
        size = CAREFUL;
      } else if (length === 0 && end === text.length) break;
      else size *= 2;
    }
    this.#rest = text.slice(start);
    return records;
  }

  /** The complete records at the beginning of a text, their total length, and the problem of the next one. */
  #parse(text: string, isLast: boolean): { rows: string[][]; length: number; problem?: string } {
    const parse = (preview: number): any => new Papa.Parser({ delimiter: this.#delimiter, newline: this.#newline, preview }).parse(text, 0, !isLast);
    const { data, errors, meta } = parse(0);
    // Ignore the error of an incomplete record: its missing end may be the only problem.
    const [error] = errors.filter(({ row }: { row: number }) => row < data.length);
    if (!error) return { rows: data, length: isLast ? text.length : meta.cursor };
    const problem = error.code === "MissingQuotes" ? "a quote is not closed" : "a quote is in the wrong place";
    if (error.row === 0) return { rows: [], length: 0, problem };
    const before = parse(error.row);
    return { rows: before.data, length: before.meta.cursor, problem };
  }

  #add(rows: string[][], { cells, lines }: Records, hasQuotes: boolean): void {
    for (const row of rows) {
      const last = row.length - 1;
      if (this.#hasReturns && row[last]!.endsWith("\r")) row[last] = row[last]!.slice(0, -1);
      if (last > 0 || row[0] !== "") {
        cells.push(row);
        lines.push(this.#line);
      }
      this.#line++;
      if (hasQuotes) for (const cell of row) for (let at = cell.indexOf(this.#newline); at >= 0; at = cell.indexOf(this.#newline, at + 1)) this.#line++;
    }
  }
}

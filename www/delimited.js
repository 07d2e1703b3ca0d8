// Parses delimited text piece by piece: CSV with quotes, and text that semicolons, tabs or bars separate.

const RECORD_MAX = 1_000_000;
const CELL = /\s*"((?:[^"]|"")*)"\s*/y;

/** The delimiter that occurs most often in the first line. */
export function delimiterOf(line) {
  const bare = line.replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t", "|"].map((delimiter) => [bare.split(delimiter).length, delimiter]);
  return counts.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

/** Reads records from pieces of text; `push` returns the complete ones, `end` the last one: `{ line, cells }` or `{ line, problem }`. */
export class DelimitedReader {
  constructor(delimiter) {
    this.delimiter = delimiter;
    this.rest = "";
    this.line = 1;
  }

  push(text) {
    return this.#take(this.rest + text, false);
  }

  end() {
    return this.#take(this.rest, true);
  }

  #take(text, isEnd) {
    const records = [];
    let start = 0;
    while (start < text.length) {
      const end = recordEnd(text, start, isEnd);
      if (end === undefined) break;
      records.push(...this.#record(text.slice(start, end).replace(/\r$/, ""), text, start, end));
      start = end + 1;
    }
    this.rest = text.slice(start);
    if (this.rest.length <= RECORD_MAX) return records;
    // An unclosed quote would take the rest of the file as one record.
    const newline = this.rest.indexOf("\n");
    records.push({ line: this.line, problem: "a quote is not closed" });
    this.line++;
    this.rest = newline < 0 ? "" : this.rest.slice(newline + 1);
    return [...records, ...this.push("")];
  }

  #record(record, text, start, end) {
    const line = this.line;
    this.line++;
    if (!record.includes('"')) return record.trim() === "" ? [] : [{ line, cells: record.split(this.delimiter) }];
    for (let at = text.indexOf("\n", start); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) this.line++;
    const cells = cellsOf(record, this.delimiter);
    return [cells ? { line, cells } : { line, problem: "a quote is in the wrong place" }];
  }
}

/** Where the record that begins at `start` ends: at the first newline outside of quotes. */
function recordEnd(text, start, isEnd) {
  let quotes = 0;
  let from = start;
  for (;;) {
    const newline = text.indexOf("\n", from);
    if (newline < 0) return isEnd ? text.length : undefined;
    for (let at = text.indexOf('"', from); at >= 0 && at < newline; at = text.indexOf('"', at + 1)) quotes++;
    if (quotes % 2 === 0) return newline;
    from = newline + 1;
  }
}

/** The cells of a record with quotes, or `undefined` if the quotes are invalid. */
function cellsOf(record, delimiter) {
  const cells = [];
  let at = 0;
  for (;;) {
    CELL.lastIndex = at;
    const quoted = CELL.exec(record);
    let end = record.indexOf(delimiter, at);
    if (quoted) {
      end = CELL.lastIndex;
      if (end < record.length && record[end] !== delimiter) return undefined;
      cells.push(quoted[1].replaceAll('""', '"'));
    } else {
      if (end < 0) end = record.length;
      const cell = record.slice(at, end);
      if (cell.includes('"')) return undefined;
      cells.push(cell);
    }
    if (end >= record.length) return cells;
    at = end + 1;
  }
}

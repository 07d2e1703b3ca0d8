// Writes tables for people: as wide as the terminal, numbers at the right.

import type { Document } from "bson";
import { bsonType, isPlain } from "../../bson.js";
import { cellText, leaves } from "./flat.js";
import type { Cursor, FileFormat, WriteOptions } from "./model.js";

/** Rows that are laid out together. The names are printed again if later rows have other fields or longer values. */
const ROWS_TOGETHER = 500;
const GAP = "  ";
/** The minimum width of a column. */
const WIDTH_MIN = 6;
const NUMBERS: readonly unknown[] = ["Double", "Int32", "Long", "Decimal128"];
/** Characters that take two columns of a terminal. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;
/** Characters that control a terminal, or that are invisible. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

interface Column {
  name: string;
  width: number;
  isNumber: boolean;
}

async function* write(cursor: Cursor, { width = 120 }: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array> {
  const encoder = new TextEncoder();
  let columns: Column[] = [];
  let rows: Map<string, unknown>[] = [];
  let total = 0;
  const page = (): Uint8Array => {
    const before = JSON.stringify(columns);
    columns = columnsOf(rows, columns);
    const { shown, hidden } = fitted(columns, width);
    let text = JSON.stringify(columns) === before ? "" : head(shown, hidden, total > 0);
    for (const row of rows) text += line(shown.map((column) => aligned(shownText(row.get(column.name)), column)));
    total += rows.length;
    onRows(rows.length);
    rows = [];
    return encoder.encode(text);
  };
  for await (const document of cursor as AsyncIterable<Document>) {
    const row = new Map<string, unknown>();
    leaves(document, (path, value) => row.set(path, value));
    if (rows.push(row) === ROWS_TOGETHER) yield page();
  }
  if (rows.length > 0) yield page();
  yield encoder.encode(total === 0 ? "No documents.\n" : "");
}

export const tableWriter: FileFormat = { name: "table", endings: [], write };

/** The columns of rows, including those of earlier rows with at least their width. */
function columnsOf(rows: readonly Map<string, unknown>[], before: readonly Column[]): Column[] {
  const columns = new Map(before.map((column) => [column.name, { ...column }]));
  for (const row of rows) {
    for (const [name, value] of row) {
      let column = columns.get(name);
      if (!column) columns.set(name, (column = { name, width: widthOf(safe(name)), isNumber: true }));
      column.width = Math.max(column.width, widthOf(shownText(value)));
      column.isNumber &&= value === null || isNumber(value);
    }
  }
  return [...columns.values()];
}

/** Fits columns into a line: the widest are made narrower, and if that is not enough, the last are left out. */
function fitted(columns: readonly Column[], width: number): { shown: Column[]; hidden: number } {
  const shown = columns.map((column) => ({ ...column }));
  const total = (): number => shown.reduce((sum, column) => sum + column.width + GAP.length, -GAP.length);
  while (total() > width) {
    const widths = shown.map((column) => column.width).sort((a, b) => b - a);
    const [widest, next = 0] = [widths[0]!, widths.find((each) => each < widths[0]!)];
    if (widest <= WIDTH_MIN) {
      if (shown.length === 1) break;
      shown.pop();
      continue;
    }
    const wide = shown.filter((column) => column.width === widest);
    const narrower = Math.max(WIDTH_MIN, next, widest - Math.ceil((total() - width) / wide.length));
    for (const column of wide) column.width = narrower;
  }
  return { shown, hidden: columns.length - shown.length };
}

function head(columns: readonly Column[], hidden: number, isLater: boolean): string {
  const note = hidden > 0 ? `(${hidden} more ${hidden === 1 ? "column does" : "columns do"} not fit: use --format ndjson, or a wider terminal)\n` : "";
  const names = line(columns.map((column) => aligned(safe(column.name), column)));
  return `${isLater ? "\n" : ""}${note}${names}${line(columns.map(({ width }) => "-".repeat(width)))}`;
}

function line(cells: readonly string[]): string {
  return `${cells.join(GAP).trimEnd()}\n`;
}

/** Text in a column: cut if it is too long, then padded. */
function aligned(text: string, { width, isNumber }: Column): string {
  let shown = text;
  if (widthOf(text) > width) {
    let left = width - 1;
    shown = "";
    for (const char of text) {
      left -= widthOf(char);
      if (left < 0) break;
      shown += char;
    }
    shown += "…";
  }
  const fill = " ".repeat(width - widthOf(shown));
  return isNumber ? fill + shown : shown + fill;
}

function shownText(value: unknown): string {
  if (value === undefined) return "";
  return safe(value === null ? "null" : typeof value === "string" ? value : cellText(value));
}

/** Text with characters that control a terminal escaped. */
function safe(text: string): string {
  return text.replaceAll(CONTROL, (char) => (char === "\n" ? "\\n" : char === "\t" ? "\\t" : char === "\r" ? "\\r" : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += char > "\u10ff" && WIDE.test(char) ? 2 : 1;
  return width;
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint" || (typeof value === "object" && value !== null && !isPlain(value) && NUMBERS.includes(bsonType(value)));
}

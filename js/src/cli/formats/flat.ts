// Documents as rows of cells: nested documents become dotted columns.

import type { Document } from "bson";
import { bsonType, isDate, isPlain } from "../../bson.js";
import { checkedMs, digits, jsonText } from "./json-text.js";

/** True for a document that has fields, each of which gets a column. */
export function isNested(value: unknown): value is Document {
  if (typeof value !== "object" || value === null || !isPlain(value)) return false;
  for (const _ in value) return true;
  return false;
}

/** Calls `visit` with the dotted path of every value that is not a document with fields. */
export function leaves(document: Document, visit: (path: string, value: unknown) => void, prefix = ""): void {
  for (const key of Object.keys(document)) {
    const value: unknown = document[key];
    if (value === undefined) continue;
    if (isNested(value)) leaves(value, visit, `${prefix}${key}.`);
    else visit(prefix + key, value);
  }
}

/** The text of a value that is neither missing nor a string. Dates are ISO 8601; arrays and types without a text form are Extended JSON. */
export function cellText(value: unknown): string {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : digits(value);
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value === null) return "";
  if (isPlain(value as object)) return jsonText(value);
  if (isDate(value as object)) {
    return isoText(value as Date);
  }
  switch (bsonType(value as object)) {
    case "Double":
    case "Int32":
      return cellText((value as { value: number }).value);
    case "Long":
    case "Decimal128":
    case "ObjectId":
      return String(value);
    default:
      return jsonText(value);
  }
}

let lastMs = NaN;
let lastText = "";

/** The text of a date. The last one is cached, because rows in order of time often repeat it. */
function isoText(date: Date): string {
  const ms = checkedMs(date);
  if (ms !== lastMs) [lastMs, lastText] = [ms, date.toISOString()];
  return lastText;
}

/** Puts documents into rows of cells. */
export class FlatRows {
  readonly #columns: ReadonlyMap<string, number>;
  /** Paths of documents whose fields have columns. */
  readonly #outer = new Set<string>();
  readonly #isChosen: boolean;

  /** `isChosen`: fields without a column are left out; else they are an error. */
  constructor(fields: readonly string[], isChosen: boolean) {
    this.#columns = new Map(fields.map((field, at) => [field, at]));
    this.#isChosen = isChosen;
    for (const field of fields) for (let dot = field.indexOf("."); dot >= 0; dot = field.indexOf(".", dot + 1)) this.#outer.add(field.slice(0, dot));
  }

  /** The values of a document by column; `undefined` where it has none. */
  cells(document: Document): unknown[] {
    const cells: unknown[] = new Array(this.#columns.size).fill(undefined);
    this.#fill(cells, document, "");
    return cells;
  }

  #fill(cells: unknown[], document: Document, prefix: string): void {
    for (const key of Object.keys(document)) {
      const value: unknown = document[key];
      if (value === undefined) continue;
      const path = prefix === "" ? key : prefix + key;
      const at = this.#columns.get(path);
      const isOuter = this.#outer.size > 0 && this.#outer.has(path);
      if (typeof value === "object" && (isOuter || !this.#isChosen) && isNested(value)) {
        if (at !== undefined && this.#isChosen) put(cells, at, path, value);
        this.#fill(cells, value, `${path}.`);
      } else if (at !== undefined) put(cells, at, path, value);
      else if (!this.#isChosen) throw new Error(`The field ${path} was added during the export; run it again, or name the columns with --fields`);
      else if (isOuter && Array.isArray(value)) throw new Error(`--fields names a field inside of ${path}, which is an array here; name ${path}`);
    }
  }
}

function put(cells: unknown[], at: number, path: string, value: unknown): void {
  if (cells[at] !== undefined) throw new Error(`Two fields of one measurement would be in the column ${path}; use ndjson or bson`);
  cells[at] = value;
}

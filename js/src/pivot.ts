// Converts documents, or columns from the caller, to a block.

import { COLUMNS_MAX, F64, I32, I64, columnOf, encodeBlock, type Column, type ColumnData } from "./block.js";
import { bsonType, isDate, isPlain, rawDocument, type RawDocument } from "./bson.js";
import { buildColumn } from "./columns.js";
import { isPrototypeClean } from "./dictionary.js";
import { BadValueError } from "./errors.js";
import type { ColumnInput } from "./shapes.js";
import type { Document } from "./types.js";

/** Of more columns, new ones come last, because to find their places would take long. */
const ORDERED_MAX = 1024;

/**
 * The block of `documents`; a key's column comes behind that of the key in front of it, in the first document that has it.
 *
 * `undefined` if the documents have so few keys in common that a block would be mostly empty. They are then sent as BSON.
 *
 * @param documents - plain objects; anything else is a `TypeError` that names its index
 * @param ids - `_id` of every document, which becomes the first column in place of what the documents have
 * @param firstRow - added to a document's index in messages
 * @throws BadValueError for a value that cannot be stored
 */
export function documentsToBlock(documents: readonly Document[], ids?: readonly unknown[], firstRow = 0): Uint8Array | undefined {
  const shape = shapeOf(documents, firstRow);
  return shape.cells * 8 + 65_536 < shape.keys.length * documents.length || shape.keys.length >= COLUMNS_MAX
    ? undefined
    : encodeBlock(documents.length, pivot(documents, shape, ids, firstRow));
}

/**
 * Encodes a document for the `documents` of a command, with `_id` first if it is given. Returns `undefined` on failure: a block may still hold the document,
 * or report a better error.
 */
export function singleDocument(document: Document, id?: unknown): RawDocument | undefined {
  try {
    shapeOf([document], 0);
    return rawDocument(id === undefined ? document : withId(document, id));
  } catch {
    return undefined;
  }
}

/** The document with this `_id`. It is assigned twice: first for the position, then for the value. */
export function withId(document: Document, id: unknown): Document {
  return Object.assign({ _id: undefined }, document, { _id: id });
}

/** The columns of `documents`, however many they are. */
export function documentsToColumns(documents: readonly Document[]): Column[] {
  return pivot(documents, shapeOf(documents, 0), undefined, 0);
}

function pivot(documents: readonly Document[], shape: Shape, ids: readonly unknown[] | undefined, firstRow: number): Column[] {
  const columns: Column[] = [];
  const add = (name: string, source: readonly unknown[], key?: string): void => {
    checkName(name);
    const column = buildColumn(name, source, key, firstRow);
    if (column) columns.push(column);
  };
  if (ids) add("_id", ids);
  for (const key of shape.keys) {
    if (ids && key === "_id") continue;
    // If a document may lack a key, the value must not come from its prototype.
    if (!shape.uniform && (!shape.plain || key in Object.prototype)) {
      add(key, documents.map((document) => (Object.hasOwn(document, key) ? document[key] : undefined)));
    } else add(key, documents, key);
  }
  return columns;
}

/**
 * The block of columns by name, all of the same length.
 *
 * `Float64Array`, `Float32Array` and `Uint32Array` become doubles, smaller integer arrays 32-bit and `BigInt64Array` 64-bit integers; arrays of values
 * become what documents with these values would. `NaN` is a value; `undefined` in an array is an absent cell.
 */
export function columnsToBlock(input: Readonly<Record<string, ColumnInput | undefined>>, firstRow = 0): Uint8Array {
  const rows = columnRows(input);
  const columns: Column[] = [];
  for (const [name, values] of Object.entries(input)) {
    if (values === undefined) continue;
    checkName(name);
    const column = Array.isArray(values) ? buildColumn(name, values, undefined, firstRow) : typedColumn(name, values as Exclude<ColumnInput, readonly unknown[]>);
    if (column) columns.push(column);
  }
  return encodeBlock(rows, columns);
}

/** The common length of `input`'s columns. No column, no row, and columns of different lengths, are a `TypeError`. */
export function columnRows(input: Readonly<Record<string, ColumnInput | undefined>>): number {
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw new TypeError("The columns must be an object of arrays");
  let rows = -1;
  let first = "";
  for (const [name, values] of Object.entries(input)) {
    if (values === undefined) continue;
    if (!Array.isArray(values) && (!ArrayBuffer.isView(values) || values instanceof DataView)) {
      throw new TypeError(`Column "${name}" must be an array`);
    }
    if (rows < 0) {
      rows = values.length;
      first = name;
    } else if (values.length !== rows) {
      throw new TypeError(`Column "${name}" has ${values.length} rows, column "${first}" has ${rows}`);
    }
  }
  if (rows < 1) throw new TypeError("There are no rows to insert");
  return rows;
}

function typedColumn(name: string, values: Exclude<ColumnInput, readonly unknown[]>): Column {
  const column = (type: number, data: ColumnData): Column => columnOf(name, type, data.length, data);
  // Compare names, so that arrays of other realms are recognised.
  const kind = Object.prototype.toString.call(values);
  if (kind === "[object Float64Array]") return column(F64, values as Float64Array);
  if (kind === "[object Int32Array]") return column(I32, values as Int32Array);
  if (kind === "[object BigInt64Array]") return column(I64, values as BigInt64Array);
  if (/ (Float|Uint32)/.test(kind)) return column(F64, Float64Array.from(values as Float32Array));
  if (/ (Int|Uint)\d/.test(kind)) return column(I32, Int32Array.from(values as Int16Array));
  throw new TypeError(`Column "${name}" is a kind of array that cannot be stored`);
}

function checkName(name: string): void {
  if (name.includes("\0")) throw new BadValueError(`The field name ${JSON.stringify(name)} contains a NUL character`);
}

interface Shape {
  /** How many values there are. */
  cells: number;
  /** Every key, behind the one that is in front of it in the first document that has it. */
  keys: string[];
  /** All documents have exactly these keys in this order. */
  uniform: boolean;
  /** All documents are plain objects. */
  plain: boolean;
}

function shapeOf(documents: readonly Document[], firstRow: number): Shape {
  const clean = isPrototypeClean();
  let plain = true;
  let uniform = true;
  let cells = 0;
  let keys: string[] = [];
  let known: Set<string> | undefined;
  for (let row = 0; row < documents.length; row++) {
    const document = documents[row]!;
    if (typeof document !== "object" || document === null) refuse(document, firstRow + row);
    const braces = isPlain(document);
    if (!braces) {
      plain = false;
      if (Array.isArray(document) || isDate(document) || document instanceof Map || ArrayBuffer.isView(document) || bsonType(document) !== undefined) {
        refuse(document, firstRow + row);
      }
    }
    if (row === 0) keys = Object.keys(document);
    if (uniform) {
      // `for in` over objects of one hidden class reads a cached list; `Object.keys` would create an array for each.
      let position = 0;
      if (braces && clean) {
        for (const key in document) if (key !== keys[position++]) uniform = false;
      } else {
        for (const key of Object.keys(document)) if (key !== keys[position++]) uniform = false;
      }
      if (uniform && position === keys.length) {
        cells += position;
        continue;
      }
      uniform = false;
    }
    known ??= new Set(keys);
    let next = 0;
    for (const key of Object.keys(document)) {
      cells++;
      if (!known.has(key)) {
        known.add(key);
        keys.splice(keys.length < ORDERED_MAX ? next : keys.length, 0, key);
      } else if (key !== keys[next] && keys.length < ORDERED_MAX) next = keys.indexOf(key);
      next++;
    }
  }
  return { cells, keys, uniform, plain };
}

function refuse(document: unknown, row: number): never {
  throw new TypeError(`Document ${row} is not a plain object: ${Object.prototype.toString.call(document)}`);
}

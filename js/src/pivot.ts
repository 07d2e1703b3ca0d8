// Documents, or columns given by the caller, to a block.

import { COLUMNS_MAX, F64, I32, I64, encodeBlock, type Column, type ColumnData } from "./block.js";
import { bsonType, isDate, isPlain } from "./bson.js";
import { buildColumn } from "./columns.js";
import { isPrototypeClean } from "./dictionary.js";
import { BadValueError } from "./errors.js";
import type { ColumnInput, Document } from "./types.js";

/**
 * The block of `documents`; a key's column comes where the key was first seen.
 *
 * `undefined` when the documents have so little in common that a block would mostly be holes: they go as BSON then.
 *
 * @param documents - plain objects; anything else is a `TypeError` that names its index
 * @param ids - `_id` of every document, which becomes the first column in place of what the documents have
 * @param firstRow - added to a document's index in messages
 * @throws BadValueError for a value that cannot be stored
 */
export function documentsToBlock(documents: readonly Document[], ids?: readonly unknown[], firstRow = 0): Uint8Array | undefined {
  const shape = shapeOf(documents, firstRow);
  if (!shape) return undefined;
  const columns: Column[] = [];
  const add = (name: string, source: readonly unknown[], key?: string): void => {
    checkName(name);
    const column = buildColumn(name, source, key, firstRow);
    if (column) columns.push(column);
  };
  if (ids) add("_id", ids);
  for (const key of shape.keys) {
    if (ids && key === "_id") continue;
    // Where a document may lack a key, its prototype must not answer instead.
    if (!shape.uniform && (!shape.plain || key in Object.prototype)) {
      add(key, documents.map((document) => (Object.hasOwn(document, key) ? document[key] : undefined)));
    } else add(key, documents, key);
  }
  return encodeBlock(documents.length, columns);
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

/** The common length of `input`'s columns. No column, and columns of different lengths, are a `TypeError`. */
export function columnRows(input: Readonly<Record<string, ColumnInput | undefined>>): number {
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw new TypeError("Columns are an object from field names to arrays");
  let rows = -1;
  let first = "";
  for (const [name, values] of Object.entries(input)) {
    if (values === undefined) continue;
    if (!Array.isArray(values) && (!ArrayBuffer.isView(values) || values instanceof DataView)) {
      throw new TypeError(`Column "${name}" is no array`);
    }
    if (rows < 0) {
      rows = values.length;
      first = name;
    } else if (values.length !== rows) {
      throw new TypeError(`Column "${name}" has ${values.length} rows, column "${first}" has ${rows}`);
    }
  }
  if (rows < 0) throw new TypeError("There are no columns");
  return rows;
}

function typedColumn(name: string, values: Exclude<ColumnInput, readonly unknown[]>): Column {
  const column = (type: number, data: ColumnData): Column => ({
    name,
    type,
    rows: data.length,
    presence: undefined,
    data,
    aux: undefined,
    dictionary: undefined,
  });
  if (values instanceof Float64Array) return column(F64, values);
  if (values instanceof Int32Array) return column(I32, values);
  if (values instanceof BigInt64Array) return column(I64, values);
  if (values instanceof Float32Array || values instanceof Uint32Array) return column(F64, Float64Array.from(values));
  if (
    values instanceof Int16Array ||
    values instanceof Uint16Array ||
    values instanceof Int8Array ||
    values instanceof Uint8Array ||
    values instanceof Uint8ClampedArray
  ) {
    return column(I32, Int32Array.from(values));
  }
  throw new TypeError(`Column "${name}" is of an array type that cannot be stored`);
}

function checkName(name: string): void {
  if (name.includes("\0")) throw new BadValueError(`The key ${JSON.stringify(name)} has a NUL character`);
}

interface Shape {
  /** Every key, in the order first seen. */
  keys: string[];
  /** All documents have exactly these keys in this order. */
  uniform: boolean;
  /** All documents are objects as braces make them. */
  plain: boolean;
}

function shapeOf(documents: readonly Document[], firstRow: number): Shape | undefined {
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
      // for-in over objects of one hidden class reads a cached list; Object.keys would make an array for each.
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
    for (const key of Object.keys(document)) {
      cells++;
      if (!known.has(key)) {
        known.add(key);
        keys.push(key);
      }
    }
    // One test for many documents, but before the product of both gets out of hand.
    if ((row & 1023) === 0 && isSparse(keys.length, row, cells)) return undefined;
  }
  return isSparse(keys.length, documents.length, cells) ? undefined : { keys, uniform, plain };
}

function isSparse(keys: number, rows: number, cells: number): boolean {
  return keys > COLUMNS_MAX || keys * rows > cells * 8 + 65_536;
}

function refuse(document: unknown, row: number): never {
  const what = document === null ? "null" : Array.isArray(document) ? "an array" : `a ${typeof document === "object" ? document.constructor.name : typeof document}`;
  throw new TypeError(`Document ${row} is ${what}, not a plain object`);
}

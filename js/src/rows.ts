// Converts blocks to documents: one reader per column, one object per row.

import { Double, Int32, Long, ObjectId } from "bson";
import { ARRAYS, BOOL, BSON, DATE, DATE_F64, F64, I32, I64, OBJECTS, OBJECT_ID, STRING, decodeBlock, isPresent, type Block, type Column } from "./block.js";
import { bsonType, decodeValues, isDate, isPlain } from "./bson.js";
import { setOwn } from "./own.js";
import { unpackText } from "./text.js";
import type { BSONReadOptions, Document } from "./types.js";

/** Returns the value of a row, or `undefined` if there is none. Each call creates new objects. */
export type Reader = (row: number) => unknown;

/** Up to this many rows, no template object is created. */
const FEW_ROWS = 8;
const TWO_32 = 2 ** 32;
const TWO_21 = 2 ** 21;

/** The documents of `block`, fields in the order of its columns. No two of them share an object. */
export function blockToDocuments(block: Block, options: BSONReadOptions = {}): Document[] {
  const names = block.columns.map((column) => column.name);
  const readers = block.columns.map((column) => columnReader(column, options));
  const count = names.length;
  const documents: Document[] = new Array(block.rows);
  const hasProto = names.includes("__proto__");
  // Copies of a template that has every field share its hidden class. Adding the fields one by one costs twice as much.
  const isUniform = !hasProto && block.rows > FEW_ROWS && block.columns.every((column) => !column.presence);
  const shape = isUniform && (JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}:null`).join()}}`) as Document);
  for (let row = 0; row < block.rows; row++) {
    const document: Document = shape ? { ...shape } : {};
    for (let i = 0; i < count; i++) {
      const value = readers[i]!(row);
      if (value !== undefined) hasProto ? setOwn(document, names[i]!, value) : (document[names[i]!] = value);
      else if (shape) delete document[names[i]!];
    }
    documents[row] = document;
  }
  return documents;
}

/** The reader of one column. */
export function columnReader(column: Column, options: BSONReadOptions): Reader {
  const { presence, dictionary } = column;
  let read: Reader;
  if (dictionary) {
    const indices = column.data as Uint32Array;
    const entry = entryReader(dictionary, options);
    read = (row) => entry(indices[row]!);
  } else {
    read = valueReader(column, options);
  }
  return presence ? (row) => (isPresent(presence, row) ? read(row) : undefined) : read;
}

/** Reads every row as if it were present. */
function valueReader(column: Column, options: BSONReadOptions): Reader {
  const asClasses = options.promoteValues === false;
  switch (column.type) {
    case F64: {
      const data = column.data as Float64Array;
      return asClasses ? (row) => new Double(data[row]!) : (row) => data[row];
    }
    case I32: {
      const data = column.data as Int32Array;
      return asClasses ? (row) => new Int32(data[row]!) : (row) => data[row];
    }
    case I64: {
      const data = column.data as BigInt64Array;
      if (options.useBigInt64) return (row) => data[row];
      const halves = halvesOf(column);
      if (asClasses || options.promoteLongs === false) return (row) => new Long(halves[row * 2]!, halves[row * 2 + 1]!);
      return (row) => {
        const low = halves[row * 2]!;
        const high = halves[row * 2 + 1]!;
        // Within ±2^53, both included, a double is exact.
        if (high >= -TWO_21 && (high < TWO_21 || (high === TWO_21 && low === 0))) return high * TWO_32 + (low >>> 0);
        return new Long(low, high);
      };
    }
    case DATE: {
      const ms = dateReader(column);
      return (row) => new Date(ms(row));
    }
    case DATE_F64: {
      const data = column.data as Float64Array;
      return (row) => new Date(data[row]!);
    }
    case BOOL: {
      const data = column.data as Uint8Array;
      return (row) => data[row] === 1;
    }
    case STRING:
      return unpackText(column.data as Uint32Array, column.aux!);
    case OBJECT_ID: {
      const data = column.data as Uint8Array;
      return (row) => new ObjectId(data.slice(row * 12, row * 12 + 12));
    }
    case ARRAYS: {
      const ends = column.data as Uint32Array;
      const element = columnReader(decodeBlock(column.aux!).columns[0]!, options);
      return (row) => {
        const values: unknown[] = [];
        for (let at = row && ends[row - 1]!; at < ends[row]!; at++) values.push(element(at));
        return values;
      };
    }
    default: {
      let values: unknown[] | undefined;
      const decode = (): unknown[] => (column.type === OBJECTS ? blockToDocuments(decodeBlock(column.aux!), options) : decodeValues(column.data as Uint32Array, column.aux!, options));
      return (row) => (values ??= decode())[row];
    }
  }
}

/** Milliseconds of a date column of either kind. */
export function dateReader(column: Column): (row: number) => number {
  if (column.type === DATE_F64) {
    const data = column.data as Float64Array;
    return (row) => data[row]!;
  }
  const halves = halvesOf(column);
  return (row) => halves[row * 2 + 1]! * TWO_32 + (halves[row * 2]! >>> 0);
}

/** The 64-bit integers of a column as low and high halves; making a `bigint` of each costs much more. */
function halvesOf(column: Column): Int32Array {
  const { buffer, byteOffset, length } = column.data;
  return new Int32Array(buffer, byteOffset, length * 2);
}

/** The reader of a dictionary. It decodes an entry once, and returns copies of mutable values. */
function entryReader(dictionary: Column, options: BSONReadOptions): Reader {
  const read = valueReader(dictionary, options);
  if (dictionary.type !== STRING && dictionary.type !== BSON) return read;
  const copies: (Reader | undefined)[] = new Array(dictionary.rows);
  const again = (index: number): unknown => decodeValues((dictionary.data as Uint32Array).subarray(index, index + 2), dictionary.aux!, options)[0];
  return (index) => (copies[index] ??= copier(read(index), again))(index);
}

/** Returns a function that returns `value`, as a new copy if it is an object. `again` decodes it once more. */
function copier(value: unknown, again: Reader): Reader {
  if (isScalar(value)) return () => value;
  if (isPlain(value as object) && Object.values(value as object).every(isScalar)) return () => ({ ...(value as object) });
  return isCopyable(value) ? () => copy(value) : again;
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

/** Whether `value` consists of plain objects, arrays, dates and scalars. */
function isCopyable(value: unknown): boolean {
  if (isScalar(value) || isDate(value)) return true;
  if (Array.isArray(value)) return value.every(isCopyable);
  return isPlain(value as object) && bsonType(value as object) === undefined && Object.values(value as object).every(isCopyable);
}

function copy(value: unknown): unknown {
  if (isScalar(value)) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (isDate(value)) return new Date(value.getTime());
  const fresh: Document = { ...(value as Document) };
  for (const key of Object.keys(fresh)) if (!isScalar(fresh[key])) setOwn(fresh, key, copy(fresh[key]));
  return fresh;
}

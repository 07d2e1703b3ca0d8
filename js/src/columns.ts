// Builds one column from JavaScript values. The first value decides the type.

import type { Double, Int32, Long, ObjectId } from "bson";
import { BOOL, BSON, DATE_F64, F64, I32, I64, OBJECT_ID, STRING, columnOf, type Column, type ColumnData } from "./block.js";
import { BsonWriter, bsonType, isDate } from "./bson.js";
import { Step, isPrototypeClean, isTooDistinct, mayRepeat } from "./dictionary.js";
import { BadValueError, TimepailError } from "./errors.js";
import { packText, type PackedText } from "./text.js";

/**
 * Where a column's values are: in `source` itself, or, if `key` is given, in that property of each element. One loop
 * serves both cases, because the choice is constant within it.
 */
type Source = readonly any[];
type Key = string | undefined;

/** Functions and symbols are omitted, like `undefined`. */
function isAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}

function typeOf(value: unknown): number {
  switch (typeof value) {
    case "number":
      return F64;
    case "string":
      return STRING;
    case "boolean":
      return BOOL;
    case "bigint":
      return I64;
    case "object":
      if (value === null) return BSON;
      switch (bsonType(value)) {
        case "Double":
          return F64;
        case "Int32":
          return I32;
        case "Long":
          return I64;
        case "ObjectId":
          return OBJECT_ID;
        case undefined:
          return isDate(value) ? DATE_F64 : BSON;
        default:
          return BSON;
      }
    default:
      return 0;
  }
}

/** Which rows have a value. The bitmap is only allocated for the first row without one. */
class Presence {
  bits: Uint8Array | undefined;
  readonly rows: number;
  constructor(rows: number) {
    this.rows = rows;
  }

  clear(row: number): void {
    if (!this.bits) {
      this.bits = new Uint8Array(Math.ceil(this.rows / 8)).fill(255);
      if (this.rows & 7) this.bits[this.rows >> 3] = (1 << (this.rows & 7)) - 1;
    }
    this.bits[row >> 3]! &= ~(1 << (row & 7));
  }
}

/**
 * A column of `source`'s values; `undefined` when no row has one.
 *
 * The first value decides the type; a column in which another type follows holds BSON values.
 * Throws a {@link BadValueError} with the position of a value that cannot be stored; `firstRow` is added to its row number.
 */
export function buildColumn(name: string, source: Source, key: Key, firstRow: number): Column | undefined {
  const rows = source.length;
  const presence = new Presence(rows);
  let start = 0;
  let type = 0;
  for (; start < rows; start++) {
    type = typeOf(key === undefined ? source[start] : source[start][key]);
    if (type !== 0) break;
    presence.clear(start);
  }
  if (start === rows) return undefined;
  const fail: Fail = (row, message, like) => {
    const told = `Document ${firstRow + row}, field ${JSON.stringify(name)}: ${message}`;
    throw like && like.code !== 2 ? new TimepailError(told, like) : new BadValueError(told);
  };
  const column = (data: ColumnData, aux?: Uint8Array, dictionary?: Column): Column => columnOf(name, type, rows, data, presence.bits, aux, dictionary);

  const packed = ({ indices, offsets, bytes }: Packed): Column =>
    indices ? column(indices, undefined, columnOf("", type, offsets.length - 1, offsets, undefined, bytes)) : column(offsets, bytes);

  // Stops and returns false at a value of another type.
  const fill = (put: (value: unknown, row: number) => boolean): boolean => {
    for (let row = start; row < rows; row++) {
      const value: unknown = key === undefined ? source[row] : source[row][key];
      if (!put(value, row)) {
        if (!isAbsent(value)) return false;
        presence.clear(row);
      }
    }
    return true;
  };

  switch (type) {
    case F64: {
      const data = new Float64Array(rows);
      if (fillNumbers(source, key, start, data, presence)) return column(data);
      break;
    }
    case DATE_F64: {
      const data = new Float64Array(rows);
      const put = (value: unknown, row: number): boolean => {
        if (!(value instanceof Date) && typeOf(value) !== DATE_F64) return false;
        const ms = (data[row] = (value as Date).getTime());
        return ms === ms || fail(row, "Invalid Date");
      };
      if (fill(put)) return column(data);
      break;
    }
    case I32: {
      const data = new Int32Array(rows);
      if (fill((value, row) => typeOf(value) === I32 && ((data[row] = (value as Int32).value), true))) return column(data);
      break;
    }
    case I64: {
      const data = new BigInt64Array(rows);
      const put = (value: unknown, row: number): boolean => {
        if (typeOf(value) !== I64) return false;
        const integer = typeof value === "bigint" ? value : (value as Long).toBigInt();
        // The array keeps the lower 64 bits, which is the intended result for an unsigned Long.
        data[row] = integer;
        return data[row] === integer || value !== integer || fail(row, `${integer} does not fit a 64-bit integer`);
      };
      if (fill(put)) return column(data);
      break;
    }
    case BOOL: {
      const data = new Uint8Array(rows);
      if (fill((value, row) => typeof value === "boolean" && ((data[row] = value ? 1 : 0), true))) return column(data);
      break;
    }
    case OBJECT_ID: {
      const data = new Uint8Array(rows * 12);
      if (fill((value, row) => typeOf(value) === OBJECT_ID && (data.set((value as ObjectId).id, row * 12), true))) return column(data);
      break;
    }
    case STRING: {
      const values: (string | undefined)[] = new Array(rows);
      if (!fill((value, row) => typeof value === "string" && ((values[row] = value), true))) break;
      return packed((mayRepeat(rows) && distinctStrings(values)) || packText(values));
    }
  }

  type = BSON;
  const values: unknown[] = new Array(rows);
  fill((value, row) => !isAbsent(value) && ((values[row] = value), true));
  return packed((mayRepeat(rows) && isPrototypeClean() && distinctValues(values, fail)) || packValues(values, presence, fail));
}

type Fail = (row: number, message: string, like?: TimepailError) => never;

/** The most common loop. In a function of its own, it stays fast regardless of the other loops. */
function fillNumbers(source: Source, key: Key, start: number, data: Float64Array, presence: Presence): boolean {
  for (let row = start; row < data.length; row++) {
    const value: unknown = key === undefined ? source[row] : source[row][key];
    if (typeof value === "number") data[row] = value;
    else if (isAbsent(value)) presence.clear(row);
    else if (typeOf(value) === F64) data[row] = (value as Double).value;
    else return false;
  }
  return true;
}

/** Values end to end, all of them or, with `indices`, the distinct ones. */
interface Packed extends PackedText {
  indices?: Uint32Array;
}

function distinctStrings(values: readonly (string | undefined)[]): Packed | undefined {
  const rows = values.length;
  const indices = new Uint32Array(rows);
  const distinct: string[] = [];
  const seen = new Map<string, number>();
  for (let row = 0; row < rows; row++) {
    const value = values[row];
    if (value === undefined) continue;
    let index = seen.get(value);
    if (index === undefined) {
      index = distinct.push(value) - 1;
      if (isTooDistinct(distinct.length, row, rows)) return undefined;
      seen.set(value, index);
    }
    indices[row] = index;
  }
  return { indices, ...packText(distinct) };
}

function distinctValues(values: readonly unknown[], fail: Fail): Packed | undefined {
  const rows = values.length;
  const indices = new Uint32Array(rows);
  const ends = [0];
  const writer = new BsonWriter();
  const root = new Step();
  for (let row = 0; row < rows; row++) {
    const value = values[row];
    if (value === undefined) continue;
    const step = root.find(value);
    let index = step ? step.index : -1;
    if (index < 0) {
      index = ends.length - 1;
      // A value can turn out to be absent because of `toBSON`. The encoding without a dictionary handles it.
      if (isTooDistinct(index + 1, row, rows) || !tagged(writer, value, row, fail)) return undefined;
      ends.push(writer.length);
      if (step) step.index = index;
    }
    indices[row] = index;
  }
  return { indices, offsets: Uint32Array.from(ends), bytes: writer.written() };
}

function packValues(values: readonly unknown[], presence: Presence, fail: Fail): Packed {
  const offsets = new Uint32Array(values.length + 1);
  const writer = new BsonWriter();
  for (let row = 0; row < values.length; row++) {
    const value = values[row];
    if (value !== undefined && !tagged(writer, value, row, fail)) presence.clear(row);
    offsets[row + 1] = writer.length;
  }
  return { offsets, bytes: writer.written() };
}

function tagged(writer: BsonWriter, value: unknown, row: number, fail: Fail): boolean {
  try {
    return writer.tagged(value);
  } catch (error) {
    if (error instanceof TimepailError) fail(row, error.message, error);
    throw error;
  }
}

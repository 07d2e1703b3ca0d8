// Converts the results of cursors to Arrow IPC: columns of blocks become Arrow columns, without an object for each row.

import { Table, TimeUnit, bool, columnFromArray, dictionary, field, float64, int32, int64, tableToIPC, timestamp, utf8 } from "@uwdata/flechette";
import type { DataType } from "@uwdata/flechette";
import { BOOL, DATE, DATE_F64, F64, I32, I64, STRING, isPresent, type Block, type Column } from "../block.js";
import type { AbstractCursor } from "../cursor.js";
import { BadValueError } from "../errors.js";
import { checkNames } from "../options.js";
import { columnReader, dateReader } from "../rows.js";
import { unpackText } from "../text.js";
import { arrowOfValues, newColumn, type MadeColumn } from "./values.js";

/** Options of {@link toArrow}. */
export interface ToArrowOptions {
  /** `"stream"` (the default) is for sending; `"file"` is for files, which readers can map into memory. */
  format?: "stream" | "file";
}

/**
 * Reads the remaining rows of a cursor, and returns them as Arrow IPC bytes: the schema and one record batch. The cursor's `map()` is not applied.
 *
 * | values | Arrow type |
 * |---|---|
 * | doubles, or doubles mixed with integers that a double can hold | `Float64` |
 * | 32-bit integers | `Int32` |
 * | 64-bit integers, or 64-bit mixed with 32-bit ones | `Int64` |
 * | dates | `Timestamp(ms, UTC)` |
 * | booleans | `Bool` |
 * | strings | `Utf8`, or `Dictionary(Int32, Utf8)` if there are few distinct values |
 * | `ObjectId`, `Decimal128`, UUIDs | `Utf8` |
 * | binary data | `Binary` |
 * | objects | `Struct` with all fields that occur in any of them |
 * | arrays of values of one type | `List` |
 * | other types, and columns of mixed types | `Utf8`, as Extended JSON |
 *
 * Missing fields and `null` become null. If a `Utf8` column holds values of another type, the metadata of the Arrow field names it under `timepail`, and {@link insertArrow} restores the type.
 *
 * @throws BadValueError if the text of a column exceeds 2 GiB
 * @example
 * ```ts
 * const bytes = await toArrow(weather.find({ station: 7 }).sort({ at: 1 }));
 * ```
 */
export async function toArrow(cursor: AbstractCursor<any, any>, options: ToArrowOptions = {}): Promise<Uint8Array> {
  return (await written(cursor, options)).bytes;
}

/**
 * Like `toArrow`, and returns the number of rows as well.
 * @internal
 */
export async function written(cursor: AbstractCursor<any, any>, options: ToArrowOptions = {}): Promise<{ bytes: Uint8Array; rows: number }> {
  checkNames(options, ["format"]);
  const { format = "stream" } = options;
  if (format !== "stream" && format !== "file") throw new TypeError('`format` is "stream" or "file"');
  const blocks: Block[] = [];
  for await (const block of cursor.blocks()) blocks.push(block);
  const table = tableOf(blocks);
  return { bytes: tableToIPC(table, { format })!, rows: table.numRows };
}

/** A column of the result: its parts in each block, in order. */
interface Parts {
  name: string;
  rows: number;
  /** The first row of each part. A block without this column has no part. */
  parts: { start: number; column: Column }[];
}

function tableOf(blocks: readonly Block[]): Table {
  const byName = new Map<string, Parts>();
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0);
  let start = 0;
  for (const block of blocks) {
    for (const column of block.columns) {
      const { name } = column;
      if (!byName.has(name)) byName.set(name, { name, rows, parts: [] });
      byName.get(name)!.parts.push({ start, column });
    }
    start += block.rows;
  }
  const made = [...byName.values()].map(arrowOf);
  return new Table({ version: 4, endianness: 0, fields: made.map(({ field }) => field), metadata: null }, made.map(({ column }) => column));
}

function arrowOf(parts: Parts): MadeColumn {
  const types = new Set(parts.parts.map(({ column }) => (column.type === DATE_F64 ? DATE : column.type)));
  const isOf = (...wanted: number[]): boolean => [...types].every((type) => wanted.includes(type));
  if (isOf(I32)) return fixed(parts, int32(), new Int32Array(parts.rows));
  if (isOf(F64, I32)) return fixed(parts, float64(), new Float64Array(parts.rows));
  if (isOf(I64)) return fixed(parts, int64(), new BigInt64Array(parts.rows));
  if (isOf(DATE)) return dates(parts);
  if (isOf(BOOL)) return bools(parts);
  if (isOf(STRING)) return strings(parts);
  return arrowOfValues(parts.name, valuesOf(parts));
}

/** Calls `put` for each row that has a value, with the index of the row in the result and the index of the value in `values`. */
function eachValue({ parts }: Parts, put: (row: number, at: number, values: Column) => void): void {
  for (const { start, column } of parts) {
    const { dictionary: entries, presence } = column;
    const indices = column.data as Uint32Array;
    for (let row = 0; row < column.rows; row++) if (isPresent(presence, row)) put(start + row, entries ? indices[row]! : row, entries ?? column);
  }
}

/** The bitmap of rows that have a value; `undefined` if all rows have one. */
function validityOf({ rows, parts }: Parts): Uint8Array | undefined {
  const [first] = parts;
  if (parts.length === 1 && first!.column.rows === rows) return first!.column.presence;
  const present = parts.reduce((sum, { column }) => sum + (column.presence ? 0 : column.rows), 0);
  if (present === rows) return undefined;
  const bits = new Uint8Array(Math.ceil(rows / 8));
  for (const { start, column } of parts) {
    for (let row = 0; row < column.rows; row++) if (isPresent(column.presence, row)) bits[(start + row) >> 3]! |= 1 << ((start + row) & 7);
  }
  return bits;
}

function made(parts: Parts, type: DataType, buffers: Record<string, unknown>): MadeColumn {
  return { field: field(parts.name, type), column: newColumn(type, parts.rows, validityOf(parts), buffers) };
}

/** Numbers whose layout in memory is the same in Arrow. */
function fixed(parts: Parts, type: DataType, values: Float64Array | Int32Array | BigInt64Array): MadeColumn {
  for (const { start, column } of parts.parts) {
    const data = (column.dictionary ?? column).data as Float64Array;
    if (!column.dictionary) (values as Float64Array).set(data, start);
    else for (const [row, index] of (column.data as Uint32Array).entries()) if (isPresent(column.presence, row)) values[start + row] = data[index]!;
  }
  return made(parts, type, { values });
}

function dates(parts: Parts): MadeColumn {
  const values = new BigInt64Array(parts.rows);
  for (const { start, column } of parts.parts) {
    if (column.type === DATE && !column.dictionary) {
      values.set(column.data as BigInt64Array, start);
      continue;
    }
    const ms = dateReader(column.dictionary ?? column);
    const index = column.dictionary ? (row: number) => (column.data as Uint32Array)[row]! : (row: number) => row;
    for (let row = 0; row < column.rows; row++) if (isPresent(column.presence, row)) values[start + row] = BigInt(Math.trunc(ms(index(row))));
  }
  return made(parts, timestamp(TimeUnit.MILLISECOND, "UTC"), { values });
}

function bools(parts: Parts): MadeColumn {
  const values = new Uint8Array(Math.ceil(parts.rows / 8));
  eachValue(parts, (row, at, column) => {
    if ((column.data as Uint8Array)[at] === 1) values[row >> 3]! |= 1 << (row & 7);
  });
  return made(parts, bool(), { values });
}

function strings(parts: Parts): MadeColumn {
  if (parts.parts.every(({ column }) => column.dictionary)) return codedStrings(parts);
  const ends = new Int32Array(parts.rows + 1);
  const sizes = (column: Column): Uint32Array => column.data as Uint32Array;
  let total = 0;
  eachValue(parts, (row, at, column) => (total += ends[row + 1] = sizes(column)[at + 1]! - sizes(column)[at]!));
  if (total > 0x7fffffff) throw new BadValueError(`The text of column "${parts.name}" exceeds 2 GiB`);
  for (let row = 0; row < parts.rows; row++) ends[row + 1]! += ends[row]!;
  const values = new Uint8Array(total);
  eachValue(parts, (row, at, column) => values.set(column.aux!.subarray(sizes(column)[at], sizes(column)[at + 1]), ends[row]));
  return made(parts, utf8(), { offsets: ends, values });
}

/** Strings in dictionaries: each block has its own dictionary, the result has one. */
function codedStrings(parts: Parts): MadeColumn {
  const codes = new Map<string, number>();
  const values = new Int32Array(parts.rows);
  for (const { start, column } of parts.parts) {
    const entries = column.dictionary!;
    const text = unpackText(entries.data as Uint32Array, entries.aux!);
    const known = new Int32Array(entries.rows).fill(-1);
    for (let row = 0; row < column.rows; row++) {
      if (!isPresent(column.presence, row)) continue;
      const index = (column.data as Uint32Array)[row]!;
      if (known[index]! < 0) {
        const entry = text(index);
        if (!codes.has(entry)) codes.set(entry, codes.size);
        known[index] = codes.get(entry)!;
      }
      values[start + row] = known[index]!;
    }
  }
  const inner = utf8();
  const coded = made(parts, dictionary(inner, int32()), { values });
  const [batch] = coded.column.data as unknown as [{ setDictionary(column: unknown): void }];
  batch.setDictionary(columnFromArray([...codes.keys()], inner));
  return coded;
}

/** The values of a column whose blocks differ in type, or that holds BSON values; equal entries of a dictionary are one object. */
function valuesOf({ rows, parts }: Parts): unknown[] {
  const values: unknown[] = new Array(rows).fill(undefined);
  for (const { start, column } of parts) {
    const { dictionary: entries, presence } = column;
    const read = columnReader(entries ?? column, { promoteValues: false, bsonRegExp: true });
    const known: unknown[] = [];
    for (let row = 0; row < column.rows; row++) {
      if (!isPresent(presence, row)) continue;
      if (!entries) values[start + row] = read(row);
      else {
        const index = (column.data as Uint32Array)[row]!;
        values[start + row] = known[index] ??= read(index);
      }
    }
  }
  return values;
}

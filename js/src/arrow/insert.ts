// Inserts Arrow tables into collections, one record batch at a time: Arrow columns become columns of blocks.

import { Binary, Decimal128, EJSON, Int32, ObjectId, UUID } from "bson";
import { TimeUnit, Type, tableFromIPC } from "@uwdata/flechette";
import type { Collection } from "../collection.js";
import { checkNames } from "../options.js";
import { setOwn } from "../own.js";
import type { ColumnInput } from "../shapes.js";
import type { Document, InsertColumnsResult } from "../types.js";
import { MEANS, type Meaning } from "./values.js";

/** A field of a schema, as defined by both flechette and Apache Arrow for JavaScript. */
interface FieldLike {
  name: string;
  type: TypeLike;
  metadata?: ReadonlyMap<string, string> | null;
}

interface TypeLike {
  typeId: number;
  bitWidth?: number;
  signed?: boolean;
  isSigned?: boolean;
  precision?: number;
  scale?: number;
  unit?: number;
  dictionary?: TypeLike;
  children?: readonly FieldLike[] | null;
}

/** A table of flechette (`Table`) or of Apache Arrow for JavaScript, such as a result of DuckDB-wasm. */
export interface ArrowTableLike {
  readonly schema: { readonly fields: readonly FieldLike[] };
  readonly numRows: number;
  getChildAt(index: number): unknown;
}

/** The input of {@link insertArrow}: Arrow IPC bytes in the stream or file format, or a table. */
export type ArrowInput = Uint8Array | ArrayBuffer | ArrowTableLike;

/** Options of {@link insertArrow}. */
export interface InsertArrowOptions {
  /** The metadata of all rows, if it is not in a column. */
  meta?: unknown;
  /** As in `insertMany`. */
  ordered?: boolean;
  /** Stops the insert before the next record batch. */
  signal?: AbortSignal;
}

/** A column of one record batch, or of a whole table: the members that columns and vectors of both libraries have. */
interface CellsLike {
  length: number;
  nullCount: number;
  at(row: number): unknown;
}

/** A column of flechette. */
interface ColumnLike {
  data: readonly (CellsLike & { values: unknown })[];
}

const TIMES = [Type.Timestamp, Type.Date] as readonly number[];
/** How many of a unit are a millisecond, for units that are shorter. */
const PER_MS: Readonly<Record<number, bigint>> = { [TimeUnit.MICROSECOND]: 1_000n, [TimeUnit.NANOSECOND]: 1_000_000n };

/**
 * Inserts the rows of an Arrow table, without creating an object for each row. Columns become fields, and structs become objects. Null means that the row does not have the field.
 *
 * Integers of up to 32 bits are stored as 32-bit integers, larger ones as 64-bit integers, floating-point numbers as doubles, decimals as `Decimal128`. Times and dates of
 * any unit are stored as dates, to the millisecond. Tables that {@link toArrow} wrote keep their types.
 *
 * @throws TypeError if a column is a time of day, a duration, an interval, a union or a map, which have no BSON type; the message names the column. Nothing is stored
 * @throws BulkWriteError as in `insertColumns`. Earlier record batches stay stored
 * @example
 * ```ts
 * const response = await fetch("/exports/weather.arrow");
 * await insertArrow(weather, await response.arrayBuffer());
 * ```
 */
export async function insertArrow(collection: Collection<any>, data: ArrowInput, options: InsertArrowOptions = {}): Promise<InsertColumnsResult> {
  checkNames(options, ["meta", "ordered", "signal"]);
  const table = tableOf(data);
  const { fields } = table.schema;
  const timeField = await timeFieldOf(collection);
  const columns = fields.map((field, at) => ({ field, column: table.getChildAt(at), read: readerOf(field, field.name) }));
  let insertedCount = 0;
  for (const batch of batchesOf(columns.map(({ column }) => column))) {
    options.signal?.throwIfAborted();
    const input: Record<string, ColumnInput> = {};
    for (const [at, { field, read }] of columns.entries()) {
      if (!read) continue;
      const cells = batch[at]!;
      const column = field.name === timeField && TIMES.includes(field.type.typeId) ? milliseconds(field.type, cells) : (numbers(field.type, cells) ?? values(cells, read));
      setOwn(input, field.name, column);
    }
    const { ordered, signal } = options;
    const given = { ...("meta" in options && { meta: options.meta }), ...(ordered !== undefined && { ordered }), ...(signal && { signal }) };
    insertedCount += (await collection.insertColumns(input as never, { ...given, timeUnit: "ms" } as never)).insertedCount;
  }
  return { acknowledged: true, insertedCount };
}

/**
 * Yields the rows of a table as documents, several at a time.
 * @internal
 */
export function* documentsOf(data: ArrowInput, rows: number): Generator<Document[], void, void> {
  const table = tableOf(data);
  const { fields } = table.schema;
  const columns = fields.map((field, at) => ({ name: field.name, column: table.getChildAt(at), read: readerOf(field, field.name) }));
  for (const batch of batchesOf(columns.map(({ column }) => column))) {
    const { length } = batch[0]!;
    for (let start = 0; start < length; start += rows) {
      const documents: Document[] = Array.from({ length: Math.min(rows, length - start) }, () => ({}));
      for (const [at, { name, read }] of columns.entries()) {
        if (!read) continue;
        for (const [row, document] of documents.entries()) {
          const value = batch[at]!.at(start + row);
          if (value !== null && value !== undefined) setOwn(document, name, read(value));
        }
      }
      yield documents;
    }
  }
}

function tableOf(data: ArrowInput): ArrowTableLike {
  const isBytes = data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  const table = isBytes ? (tableFromIPC(data as Uint8Array, { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true }) as unknown as ArrowTableLike) : data;
  if (!Array.isArray(table?.schema?.fields) || typeof table.getChildAt !== "function") throw new TypeError("insertArrow takes Arrow IPC bytes or an Arrow table");
  return table;
}

async function timeFieldOf(collection: Collection<any>): Promise<string | undefined> {
  // A result without rows has the column of times.
  const [name] = Object.keys(await collection.find({ $nor: [{}] }).toColumns());
  return name;
}

/** Yields the columns of each record batch. Vectors of other libraries count as one batch. */
function batchesOf(columns: readonly unknown[]): CellsLike[][] {
  const parts = columns.map((column) => (isFlechette(column) ? column.data : [column as CellsLike]));
  const batches = (parts[0] ?? []).map((_, batch) => parts.map((part) => part[batch]!));
  return batches.filter(([first]) => first!.length > 0);
}

const isFlechette = (column: unknown): column is ColumnLike => Array.isArray((column as ColumnLike).data) && (column as { toArray?: unknown }).toArray !== undefined && !("stride" in (column as object));

/** The numbers of a column as a view of its memory; `undefined` if their layout differs. */
function numbers({ typeId, bitWidth, precision, signed = true, isSigned = signed }: TypeLike, cells: CellsLike): ColumnInput | undefined {
  const { values } = cells as { values?: unknown };
  if (cells.nullCount > 0 || !ArrayBuffer.isView(values)) return undefined;
  if (typeId === Type.Float && precision !== 0) return (values as Float64Array).subarray(0, cells.length);
  if (typeId !== Type.Int || (!isSigned && bitWidth! >= 32)) return undefined;
  return (values as Int32Array).subarray(0, cells.length) as ColumnInput;
}

function values(cells: CellsLike, read: (value: any) => unknown): ColumnInput {
  const column: unknown[] = new Array(cells.length);
  for (let row = 0; row < cells.length; row++) {
    const value = cells.at(row);
    column[row] = value === null || value === undefined ? undefined : read(value);
  }
  return column as ColumnInput;
}

/** The time of each row. The engine refuses rows without one. */
function milliseconds(type: TypeLike, cells: CellsLike): ColumnInput {
  const { values: raw } = cells as { values?: unknown };
  if (type.typeId !== Type.Timestamp) return values(cells, dateOf);
  if (cells.nullCount > 0 || !(raw instanceof BigInt64Array)) return values(cells, timestampReader(type));
  const column = new Float64Array(cells.length);
  for (let row = 0; row < cells.length; row++) column[row] = msOf(raw[row]!, type.unit!);
  return column;
}

/** Milliseconds since 1970, rounded down. Doubles do not hold a number of nanoseconds exactly. */
function msOf(time: bigint, unit: number): number {
  const perMs = PER_MS[unit];
  if (perMs === undefined) return Number(time) * (unit === TimeUnit.SECOND ? 1000 : 1);
  return Number((time < 0n ? time - perMs + 1n : time) / perMs);
}

/** Of flechette's own tables, the cells are numbers of the unit; those of others are milliseconds or dates. */
const timestampReader =
  ({ unit }: TypeLike) =>
  (value: number | bigint | Date): Date =>
    typeof value === "bigint" ? new Date(msOf(value, unit!)) : dateOf(value);

const dateOf = (value: number | bigint | Date): Date => (value instanceof Date ? value : new Date(Math.floor(Number(value))));

/** Gives what a value is stored as; `undefined` for a column that has none. */
function readerOf({ type, metadata }: FieldLike, path: string): ((value: any) => unknown) | undefined {
  const means = metadata?.get(MEANS) as Meaning | undefined;
  // In Apache Arrow's own library, a dictionary has a negative type id.
  const of = type.dictionary ?? type;
  switch (of.typeId as number) {
    case Type.Null:
      return undefined;
    case Type.Int:
      return integerReader(of, path);
    case Type.Float:
    case Type.Bool:
      return (value) => value;
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Utf8View:
      return means ? meant(means, path) : (value) => value;
    case Type.Binary:
    case Type.LargeBinary:
    case Type.BinaryView:
    case Type.FixedSizeBinary:
      return (value: Uint8Array) => new Binary(value.slice());
    case Type.Timestamp:
      return timestampReader(of);
    case Type.Date:
      return dateOf;
    case Type.Decimal:
      return decimalReader(of.scale!);
    case Type.List:
    case Type.LargeList:
    case Type.FixedSizeList:
    case Type.ListView:
    case Type.LargeListView: {
      const read = readerOf(of.children![0]!, `${path}[]`) ?? (() => null);
      return (value: Iterable<unknown>) => Array.from(value, (element) => (element === null || element === undefined ? null : read(element)));
    }
    case Type.Struct: {
      const children = of.children!.map((child) => [child.name, readerOf(child, `${path}.${child.name}`)] as const);
      return (value: Record<string, unknown>) => {
        const known = children.filter(([name, read]) => read && value[name] !== null && value[name] !== undefined);
        return Object.fromEntries(known.map(([name, read]) => [name, read!(value[name])]));
      };
    }
  }
  throw new TypeError(`Column "${path}" has the Arrow type ${nameOf(of.typeId)}, which no BSON type holds`);
}

function integerReader({ bitWidth, signed, isSigned = signed }: TypeLike, path: string): (value: number | bigint) => unknown {
  if (bitWidth! < 32 || (bitWidth === 32 && isSigned !== false)) return (value) => new Int32(Number(value));
  return (value) => {
    const integer = BigInt(value);
    if (integer >= 2n ** 63n) throw new TypeError(`Column "${path}": ${integer} does not fit into a signed 64-bit integer`);
    return integer;
  };
}

/** Decimals are read as integers. */
function decimalReader(scale: number): (value: unknown) => Decimal128 {
  return (value) => Decimal128.fromString(`${String(value)}E${-scale}`);
}

function meant(means: Meaning, path: string): (value: string) => unknown {
  switch (means) {
    case "objectId":
      return (value) => new ObjectId(value);
    case "decimal128":
      return (value) => Decimal128.fromString(value);
    case "uuid":
      return (value) => new UUID(value);
    case "json":
      return (value) => (EJSON.parse(`{"value":${value}}`, { relaxed: false }) as Document)["value"];
  }
  throw new TypeError(`Column "${path}" has the type "${String(means)}" in its metadata, which this version does not know`);
}

const nameOf = (typeId: number): string => Object.entries(Type).find(([, id]) => id === typeId)?.[0] ?? String(typeId);

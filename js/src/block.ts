// The block format: equal-length typed columns as bytes. docs/internals/block-format.md has the rules; this file encodes and decodes.

import { BadValueError } from "./errors.js";
import { decodeText, encodeText } from "./text.js";

export const F64 = 1;
export const I32 = 2;
export const I64 = 3;
export const DATE = 4;
export const BOOL = 5;
export const STRING = 6;
export const OBJECT_ID = 7;
export const BSON = 8;
export const DATE_F64 = 9;
export const OBJECTS = 10;
export const ARRAYS = 11;

/** The array types that hold a column's values. */
export type ColumnData = Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint32Array;

/** One column. Its arrays may be views into a block's bytes. */
export interface Column {
  name: string;
  type: number;
  rows: number;
  /** Bit `i & 7` of byte `i >> 3` says whether row i has a value; `undefined` when every row has one. */
  presence: Uint8Array | undefined;
  /** Values, or offsets into `aux` for strings and BSON values, or the ends of arrays among their elements, or indices when there is a dictionary. */
  data: ColumnData;
  /** The bytes of strings and BSON values, or a block with the fields of objects or the elements of arrays. */
  aux: Uint8Array | undefined;
  /** The distinct values: a column of the same type in which every row is present. */
  dictionary: Column | undefined;
}

/** Columns of the same number of rows. */
export interface Block {
  rows: number;
  columns: Column[];
}

export const ROWS_MAX = 2 ** 24;
export const COLUMNS_MAX = 65_535;

const MAGIC = 0x31425054; // "TPB1"
const HEADER_BYTES = 16;
const ENTRY_WORDS = 8;

/** The array class of a data section and its bytes per row, indexed by type. The first is for a column with a dictionary: indexes. */
const CLASSES = [Uint32Array, Float64Array, Int32Array, BigInt64Array, BigInt64Array, Uint8Array, Uint32Array, Uint8Array, Uint32Array, Float64Array, Uint8Array, Uint32Array] as const;
const WIDTHS = [4, 8, 4, 8, 8, 1, 4, 12, 4, 8, 0, 4];

/** A column, with its properties in one order, so that all columns have one hidden class. */
export function columnOf(name: string, type: number, rows: number, data: ColumnData, presence?: Uint8Array, aux?: Uint8Array, dictionary?: Column): Column {
  return { name, type, rows, presence, data, aux, dictionary };
}

const aligned = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Whether row `row` has a value. */
export function isPresent(presence: Uint8Array | undefined, row: number): boolean {
  return presence === undefined || ((presence[row >> 3]! >> (row & 7)) & 1) === 1;
}

/** The bytes of a block. Every section, names included, starts at a multiple of 8. */
export function encodeBlock(rows: number, columns: readonly Column[]): Uint8Array {
  let end = HEADER_BYTES + columns.length * ENTRY_WORDS * 4;
  const sections: { at: number; data: ColumnData }[] = [];
  const entries = new Uint32Array(columns.length * ENTRY_WORDS);
  const place = (data: ColumnData): number => {
    const at = end;
    sections.push({ at, data });
    end = aligned(at + data.byteLength);
    return at;
  };
  columns.forEach((column, i) => {
    const name = encodeText(column.name);
    const aux = column.dictionary ? encodeBlock(column.dictionary.rows, [column.dictionary]) : column.aux;
    entries.set(
      [
        place(name),
        name.length,
        column.type + (column.dictionary ? 256 : 0),
        column.presence ? place(column.presence) : 0,
        place(column.data),
        column.data.byteLength,
        aux ? place(aux) : 0,
        aux ? aux.length : 0,
      ],
      i * ENTRY_WORDS,
    );
  });
  if (rows > ROWS_MAX || columns.length > COLUMNS_MAX || end > 0xffffffff) {
    throw new BadValueError(`A block of ${rows} rows, ${columns.length} columns and ${end} bytes is too large`);
  }
  const block = new Uint8Array(end);
  new Uint32Array(block.buffer, 0, 4).set([MAGIC, rows, columns.length, end]);
  new Uint32Array(block.buffer, HEADER_BYTES, entries.length).set(entries);
  for (const { at, data } of sections) {
    // Copy through a view of the same type, because reading the `buffer` of a small array is expensive.
    const Data = data.constructor as new (buffer: ArrayBuffer, at: number, length: number) => Float64Array;
    new Data(block.buffer, at, data.length).set(data as Float64Array);
  }
  return block;
}

/**
 * Reads a block of the engine. Columns are views into `bytes`; only bytes that do not start at a multiple of 8 are copied first.
 *
 * Throws a {@link BadValueError} if a section does not lie inside the block, or its length does not fit its type. Values are not checked: the engine wrote them.
 */
export function decodeBlock(bytes: Uint8Array): Block {
  const { buffer, byteOffset, length } = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  const section = <T>(Data: { new (buffer: ArrayBufferLike, at: number, length: number): T; BYTES_PER_ELEMENT: number }, at: number, size: number): T => {
    if (at % 8 !== 0 || at + size > length) malformed(`section at ${at}`);
    return new Data(buffer, byteOffset + at, size / Data.BYTES_PER_ELEMENT);
  };
  const [magic, rows, count, stated] = section(Uint32Array, 0, HEADER_BYTES) as unknown as [number, number, number, number];
  if (magic !== MAGIC || stated !== length) malformed("header");
  const entries = section(Uint32Array, HEADER_BYTES, count * ENTRY_WORDS * 4);
  const columns = Array.from({ length: count }, (_, i): Column => {
    const entry = entries.subarray(i * ENTRY_WORDS, (i + 1) * ENTRY_WORDS) as unknown as [number, number, number, number, number, number, number, number];
    const [nameAt, nameSize, kind, presenceAt, dataAt, dataSize, auxAt, auxSize] = entry;
    const name = decodeText(section(Uint8Array, nameAt, nameSize));
    const type = kind & 255;
    const hasDictionary = kind > 255;
    const hasOffsets = !hasDictionary && (type === STRING || type === BSON);
    const layout = hasDictionary ? 0 : type;
    if (!type || dataSize !== WIDTHS[layout]! * (rows + (hasOffsets ? 1 : 0))) malformed(`column "${name}"`);
    return columnOf(
      name,
      type,
      rows,
      section<ColumnData>(CLASSES[layout]!, dataAt, dataSize),
      presenceAt ? section(Uint8Array, presenceAt, Math.ceil(rows / 8)) : undefined,
      auxAt && !hasDictionary ? section(Uint8Array, auxAt, auxSize) : undefined,
      hasDictionary ? decodeBlock(section(Uint8Array, auxAt, auxSize)).columns[0] : undefined,
    );
  });
  return { rows, columns };
}

function malformed(what: string): never {
  throw new BadValueError(`Malformed block: ${what}`);
}

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

/** The array types that hold a column's values. */
export type ColumnData = Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint32Array;

/** One column. Its arrays may be views into a block's bytes. */
export interface Column {
  name: string;
  type: number;
  rows: number;
  /** Bit `i & 7` of byte `i >> 3` says whether row i has a value; `undefined` when every row has one. */
  presence: Uint8Array | undefined;
  /** Values, or offsets into `aux` for strings and BSON values, or indices when there is a dictionary. */
  data: ColumnData;
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
const DATE_MAX_MS = 8.64e15;

/** Bytes per row, indexed by type. 0 for types without a fixed width. */
const WIDTHS = [0, 8, 4, 8, 8, 1, 0, 12, 0, 8];

/** The array class of a data section, indexed by type. */
const ARRAYS = [undefined, Float64Array, Int32Array, BigInt64Array, BigInt64Array, Uint8Array, undefined, Uint8Array, undefined, Float64Array] as const;

const aligned = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Whether row `row` has a value. */
export function isPresent(presence: Uint8Array | undefined, row: number): boolean {
  return presence === undefined || ((presence[row >> 3]! >> (row & 7)) & 1) === 1;
}

/** The bytes of a block. Every section, names included, starts at a multiple of 8. */
export function encodeBlock(rows: number, columns: readonly Column[]): Uint8Array {
  if (rows > ROWS_MAX || columns.length > COLUMNS_MAX) {
    throw new BadValueError(`A block of ${rows} rows and ${columns.length} columns is too large`);
  }
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
  if (end > 0xffffffff) throw new BadValueError(`A block of ${end} bytes is too large`);
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
 * Reads a block. Columns are views into `bytes`; only bytes that do not start at a multiple of 8 are copied first.
 *
 * Throws a {@link BadValueError} for bytes that violate the format. Text and BSON values are checked only when they are read.
 */
export function decodeBlock(bytes: Uint8Array): Block {
  return readBlock(bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes), false);
}

function malformed(what: string): never {
  throw new BadValueError(`Malformed block: ${what}`);
}

function readBlock(bytes: Uint8Array, nested: boolean): Block {
  const { buffer, byteOffset, length } = bytes;
  if (length < HEADER_BYTES) malformed("header");
  const [magic, rows, count, stated] = new Uint32Array(buffer, byteOffset, 4) as unknown as [number, number, number, number];
  const words = count * ENTRY_WORDS;
  if (magic !== MAGIC || stated !== length || rows > ROWS_MAX || count > COLUMNS_MAX || HEADER_BYTES + words * 4 > length) malformed("header");

  const section = (at: number, size: number): Uint8Array => {
    if (at % 8 !== 0 || at + size > length) malformed(`section at ${at}`);
    return new Uint8Array(buffer, byteOffset + at, size);
  };

  const columns: Column[] = [];
  const names = new Set<string>();
  const entries = new Uint32Array(buffer, byteOffset + HEADER_BYTES, words);
  for (let i = 0; i < words; i += ENTRY_WORDS) {
    const [nameAt, nameSize, kind, presenceAt, dataAt, dataSize, auxAt, auxSize] = entries.subarray(i, i + ENTRY_WORDS);
    const name = decodeText(section(nameAt!, nameSize!));
    if (name.includes("\0") || names.has(name)) malformed(`column name ${JSON.stringify(name)}`);
    names.add(name);
    const type = kind! & 255;
    const flags = kind! >>> 8;
    if (type < F64 || type > DATE_F64 || flags > (nested ? 0 : 1)) malformed(`type ${kind}`);
    const column = {
      name,
      type,
      rows,
      presence: presenceAt ? section(presenceAt, Math.ceil(rows / 8)) : undefined,
      data: section(dataAt!, dataSize!),
      aux: auxAt || auxSize ? section(auxAt!, auxSize!) : undefined,
      dictionary: undefined,
    };
    columns.push(readColumn(column, flags === 1));
  }
  if (nested && (count !== 1 || columns[0]!.name || columns[0]!.presence)) malformed("dictionary");
  return { rows, columns };
}

/** Checks a column whose `data` is still raw bytes, and replaces it with a view of the right type. */
function readColumn(column: Column, isDictionary: boolean): Column {
  const { name, type, rows, presence, aux } = column;
  const bytes = column.data as Uint8Array;
  const check = (holds: boolean, what: string): void => {
    if (!holds) malformed(`${what} of column "${name}"`);
  };
  const hasOffsets = !isDictionary && (type === STRING || type === BSON);
  const width = isDictionary || hasOffsets ? 4 : WIDTHS[type]!;
  check(bytes.length === width * (rows + (hasOffsets ? 1 : 0)), "data length");
  check(isDictionary || hasOffsets || !aux, "aux");
  const Data = isDictionary || hasOffsets ? Uint32Array : ARRAYS[type]!;
  const data = new Data(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / Data.BYTES_PER_ELEMENT);

  if (presence) {
    check(!(rows & 7) || presence[rows >> 3]! >> (rows & 7) === 0, "presence");
    for (let row = 0; row < rows && !hasOffsets; row++) {
      if (isPresent(presence, row)) continue;
      for (let at = row * width; at < (row + 1) * width; at++) check(bytes[at] === 0, "absent value");
    }
  }
  if (isDictionary) {
    const dictionary = readBlock(aux ?? malformed("dictionary"), true).columns[0]!;
    check(dictionary.type === type, "dictionary");
    for (let row = 0; row < rows; row++) check(data[row]! < dictionary.rows || !isPresent(presence, row), "index");
    return { ...column, data, aux: undefined, dictionary };
  }
  if (hasOffsets) {
    const ends = data as Uint32Array;
    check(ends[0] === 0 && ends[rows] === (aux ? aux.length : 0), "offsets");
    for (let row = 0; row < rows; row++) {
      const size = ends[row + 1]! - ends[row]!;
      check(isPresent(presence, row) ? size >= (type === BSON ? 1 : 0) : size === 0, "offsets");
    }
    return { ...column, data, aux: aux ?? new Uint8Array(0) };
  }
  if (type === BOOL || type === DATE_F64) {
    const max = type === BOOL ? 1 : DATE_MAX_MS;
    for (let row = 0; row < rows; row++) check(Math.abs(Number(data[row])) <= max, "value");
  }
  return { ...column, data };
}

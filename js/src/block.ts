// The block format: equal-length typed columns as bytes. ARCHITECTURE.md has the rules; both directions are here.

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

/** What a column's values lie in. */
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

/** Bytes a row; 0 where rows have no fixed width. By type. */
const WIDTHS = [0, 8, 4, 8, 8, 1, 0, 12, 0, 8];

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
    // A view of the block in the section's own type: to ask a small array for its buffer is costly.
    const Data = data.constructor as new (buffer: ArrayBuffer, at: number, length: number) => Float64Array;
    new Data(block.buffer, at, data.length).set(data as Float64Array);
  }
  return block;
}

/**
 * Reads a block. Columns are views into `bytes`; only bytes that do not start at a multiple of 8 are copied first.
 *
 * Whatever breaks a rule of the format is a {@link BadValueError}; text and BSON values are checked when they are read.
 */
export function decodeBlock(bytes: Uint8Array): Block {
  return readBlock(bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes), false);
}

function malformed(what: string): never {
  throw new BadValueError(`Malformed block: ${what}`);
}

function readBlock(bytes: Uint8Array, nested: boolean): Block {
  const { buffer, byteOffset, length } = bytes;
  if (length < HEADER_BYTES) malformed(`${length} bytes are too few`);
  const [magic, rows, count, stated] = new Uint32Array(buffer, byteOffset, 4) as unknown as [number, number, number, number];
  if (magic !== MAGIC) malformed("it does not begin with TPB1");
  if (stated !== length) malformed(`its length is stated as ${stated}, it has ${length} bytes`);
  if (rows > ROWS_MAX || count > COLUMNS_MAX) malformed(`${rows} rows, ${count} columns`);
  if (HEADER_BYTES + count * ENTRY_WORDS * 4 > length) malformed("the directory does not fit");
  const entries = new Uint32Array(buffer, byteOffset + HEADER_BYTES, count * ENTRY_WORDS);

  const section = (at: number, size: number): Uint8Array => {
    if (at % 8 !== 0 || at + size > length) malformed(`${size} bytes at ${at} are no section of it`);
    return new Uint8Array(buffer, byteOffset + at, size);
  };

  const columns: Column[] = [];
  const names = new Set<string>();
  for (let i = 0; i < entries.length; i += ENTRY_WORDS) {
    const entry = entries.subarray(i, i + ENTRY_WORDS);
    const name = decodeText(section(entry[0]!, entry[1]!));
    if (name.includes("\0") || names.has(name)) malformed(`column name ${JSON.stringify(name)}`);
    names.add(name);
    const type = entry[2]! & 255;
    const flags = entry[2]! >>> 8;
    if (type < F64 || type > DATE_F64 || flags > (nested ? 0 : 1)) malformed(`type ${entry[2]} of column "${name}"`);
    const presence = entry[3] === 0 ? undefined : section(entry[3]!, Math.ceil(rows / 8));
    const data = section(entry[4]!, entry[5]!);
    const aux = entry[6] === 0 && entry[7] === 0 ? undefined : section(entry[6]!, entry[7]!);
    columns.push(readColumn({ name, type, rows, presence, data, aux, dictionary: undefined }, flags === 1));
  }
  if (nested && (columns.length !== 1 || columns[0]!.name !== "" || columns[0]!.presence)) malformed("a dictionary is one whole column");
  return { rows, columns };
}

/** Checks a column whose `data` is still bytes, and lays the right array over it. */
function readColumn(column: Column, isDictionary: boolean): Column {
  const { name, type, rows, presence, aux } = column;
  const bytes = column.data as Uint8Array;
  const fail = (what: string): never => malformed(`${what} in column "${name}"`);
  const hasOffsets = !isDictionary && (type === STRING || type === BSON);
  const width = isDictionary || hasOffsets ? 4 : WIDTHS[type]!;
  if (bytes.length !== width * (rows + (hasOffsets ? 1 : 0))) fail(`${bytes.length} bytes of data`);
  if (!isDictionary && !hasOffsets && aux) fail("unexpected aux");
  const lay = <T>(constructor: new (buffer: ArrayBufferLike, at: number, length: number) => T): T =>
    new constructor(bytes.buffer, bytes.byteOffset, bytes.length / width);

  if (presence) {
    if (rows & 7 && presence[rows >> 3]! >> (rows & 7)) fail("spare bits of presence");
    if (!hasOffsets) {
      for (let row = 0; row < rows; row++) {
        if (isPresent(presence, row)) continue;
        for (let at = row * width; at < (row + 1) * width; at++) if (bytes[at] !== 0) fail(`a value in absent row ${row}`);
      }
    }
  }

  if (isDictionary) {
    const inner = readBlock(aux ?? malformed("no dictionary"), true).columns[0]!;
    if (inner.type !== type) fail("a dictionary of another type");
    const data = lay(Uint32Array);
    for (let row = 0; row < rows; row++) if (data[row]! >= inner.rows && isPresent(presence, row)) fail(`index ${data[row]}`);
    return { ...column, data, aux: undefined, dictionary: inner };
  }
  if (hasOffsets) {
    const data = lay(Uint32Array);
    let last = 0;
    if (data[0] !== 0) fail("first offset");
    for (let row = 0; row < rows; row++) {
      const next = data[row + 1]!;
      const absent = !isPresent(presence, row);
      if (next < last || (next > last ? absent : type === BSON && !absent)) fail(`offset ${next}`);
      last = next;
    }
    if (last !== (aux ? aux.length : 0)) fail("last offset");
    return { ...column, data, aux: aux ?? new Uint8Array(0) };
  }
  switch (type) {
    case I32:
      return { ...column, data: lay(Int32Array) };
    case I64:
    case DATE:
      return { ...column, data: lay(BigInt64Array) };
    case BOOL:
      for (let row = 0; row < rows; row++) if (bytes[row]! > 1) fail(`boolean ${bytes[row]}`);
      return column;
    case OBJECT_ID:
      return column;
    default: {
      const data = lay(Float64Array);
      if (type === DATE_F64) {
        for (let row = 0; row < rows; row++) if (!(Math.abs(data[row]!) <= DATE_MAX_MS)) fail(`date ${data[row]}`);
      }
      return { ...column, data };
    }
  }
}

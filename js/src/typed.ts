// Converts blocks to columns for the caller: typed arrays if the type allows it.

import { DATE, DATE_F64, F64, I32, I64, isPresent, type Block, type Column } from "./block.js";
import { setOwn } from "./own.js";
import type { Reader, columnReader, dateReader } from "./rows.js";
import { seriesOf } from "./series.js";
import type { Columns, Series } from "./shapes.js";
import type { BSONReadOptions, Document } from "./types.js";
import { untagged } from "./untagged.js";

/** The part of a column that lies in one block; `column` is missing where the block has no such field. */
interface Part {
  rows: number;
  column: Column | undefined;
}

/** What every page has already loaded: the readers of single values. */
export type Readers = readonly [typeof columnReader, typeof dateReader];

/** The result of `toColumns`. Fields that `stages` name have a column even without rows. With `by`, the columns of each series. */
export function columnsOrSeries(blocks: readonly Block[], by: string | undefined, stages: readonly Document[], options: BSONReadOptions, readers: Readers): Columns | Series<any>[] {
  // A result without rows still has columns, empty ones.
  const columns = blocksToColumns(blocks, options, readers) as Document;
  if (!blocks[0]?.rows) for (const name of namedBy(stages)) if (!Object.hasOwn(columns, name)) setOwn(columns, name, new Float64Array());
  return by === undefined ? columns : seriesOf(columns, by, rowsWith(blocks, by.split(".")[0]!));
}

/** Stages that pass rows on, fields and all. */
const PASSING = /^\$(match|sort|limit|skip|sample|downsample|addFields|set|unset)$/;

/** The top-level fields of the result that the stages name. */
function namedBy(stages: readonly Document[]): string[] {
  const names: string[] = [];
  for (let at = stages.length; at-- > 0; ) {
    const [stage = "", shown = {}] = (Object.entries(stages[at]!)[0] ?? []) as [string?, Document?];
    if (/^\$(project|group|addFields|set)$/.test(stage)) {
      names.push(...Object.keys(shown).flatMap((path) => (shown[path] === 0 || shown[path] === false ? [] : path.split(".", 1))));
    }
    if (!PASSING.test(stage)) break;
  }
  return names;
}

/**
 * The columns of consecutive blocks, end to end.
 *
 * | values | column | absent cells |
 * |---|---|---|
 * | doubles, or doubles and 32-bit integers | `Float64Array` | `NaN` |
 * | 32-bit integers | `Int32Array`; `Float64Array` when cells are absent | `NaN` |
 * | 64-bit integers | `BigInt64Array`; array of `bigint` when cells are absent | `undefined` |
 * | 64-bit integers with doubles or 32-bit integers | array of `bigint` and `number` | `undefined` |
 * | dates | `Float64Array` of milliseconds | `NaN` |
 * | anything else | array of values | `undefined` |
 *
 * The arrays of a single block are returned without copying.
 */
export function blocksToColumns(blocks: readonly Block[], options: BSONReadOptions, readers: Readers): Columns {
  const rows = blocks.filter((block) => block.rows > 0);
  const columns: Document = {};
  // A result without rows still has its time column, an empty one.
  if (rows.length === 0) for (const { name } of blocks[0]?.columns ?? []) setOwn(columns, name, new Float64Array());
  for (const name of new Set(rows.flatMap((block) => block.columns.map((column) => column.name)))) {
    const parts = partsOf(rows, name);
    if (parts.some(({ column }) => column)) setOwn(columns, name, join(parts, options, readers));
  }
  return columns;
}

/** Which rows of consecutive blocks have the field. */
function rowsWith(blocks: readonly Block[], name: string): boolean[] {
  return partsOf(blocks, name).flatMap(({ rows, column }) => Array.from({ length: rows }, (_, row) => column !== undefined && isPresent(column.presence, row)));
}

function partsOf(blocks: readonly Block[], name: string): Part[] {
  return blocks.map(({ rows, columns }) => ({ rows, column: columns.find((column) => column.name === name && hasCells(column)) }));
}

/** Whether any row has a value. The type of a column without values is meaningless: it comes from rows that are not in the result. */
function hasCells({ presence, rows }: Column): boolean {
  for (let row = 0; row < rows; row++) if (isPresent(presence, row)) return true;
  return false;
}

function join(tagged: readonly Part[], options: BSONReadOptions, [columnReader, dateReader]: Readers): unknown {
  const types = new Set<number>();
  const parts = tagged.map(({ rows, column }): Part => {
    if (!column) return { rows, column };
    const found = untagged(column);
    for (const type of found.types) types.add(type === DATE ? DATE_F64 : type);
    return { rows, column: found.column };
  });
  const isWhole = parts.every(({ column }) => column && !column.presence);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const [type] = types;
  const only = parts.length === 1 && !parts[0]!.column!.dictionary ? parts[0]!.column! : undefined;

  if (types.size === 1 && isWhole && (type === I32 || type === I64)) {
    if (only) return only.data;
    if (type === I32) return fill(new Int32Array(rows), parts, (column) => columnReader(column, { promoteValues: true }));
    return fill(new BigInt64Array(rows), parts, (column) => columnReader(column, { useBigInt64: true }));
  }
  if (types.size === 1 && type === DATE_F64) {
    return only && isWhole && only.type === DATE_F64 ? only.data : fillDates(new Float64Array(rows).fill(NaN), parts, dateReader);
  }
  if ([...types].every((each) => each === F64 || each === I32)) {
    return only && isWhole ? only.data : fill(new Float64Array(rows).fill(NaN), parts, (column) => columnReader(column, { promoteValues: true }));
  }
  const asIs = types.has(I64) && [...types].every((each) => each === I64 || each === F64 || each === I32);
  return fill(new Array(rows).fill(undefined), tagged, (column) => columnReader(column, asIs ? { useBigInt64: true } : options));
}

/** Copies present values; runs of typed values are copied at once. */
function fill<T extends Float64Array | Int32Array | BigInt64Array | unknown[]>(into: T, parts: readonly Part[], readerOf: (column: Column) => Reader): T {
  let start = 0;
  for (const { rows, column } of parts) {
    if (column && !column.presence && !column.dictionary && !Array.isArray(into)) {
      (into as Float64Array).set(column.data as Float64Array, start);
    } else if (column) {
      const read = readerOf(column);
      for (let row = 0; row < rows; row++) {
        const value = read(row);
        if (value !== undefined) (into as unknown[])[start + row] = value;
      }
    }
    start += rows;
  }
  return into;
}

function fillDates(into: Float64Array, parts: readonly Part[], dateReader: Readers[1]): Float64Array {
  let start = 0;
  for (const { rows, column } of parts) {
    if (column) {
      const indices = column.dictionary && (column.data as Uint32Array);
      const ms = dateReader(column.dictionary ?? column);
      for (let row = 0; row < rows; row++) {
        if (isPresent(column.presence, row)) into[start + row] = ms(indices ? indices[row]! : row);
      }
    }
    start += rows;
  }
  return into;
}

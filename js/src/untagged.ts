// Columns with a type byte for each value, all of which are numbers or all dates.

import { BSON, DATE_F64, F64, I32, I64, isPresent, type Column } from "./block.js";

/** The BSON types of a double, a date, a 32-bit and a 64-bit integer. */
const [DOUBLE, DATE, INT32, INT64] = [1, 9, 16, 18] as const;
const TYPED = new Set<number>([DOUBLE, DATE, INT32, INT64]);
const TWO_32 = 2 ** 32;

/** A column, and the types of its values where their tags say more than the column. */
export interface Untagged {
  column: Column;
  types: readonly number[];
}

/**
 * The same column without tags if its values are doubles and 32-bit integers, or 64-bit integers, or dates: how rows are grouped into buckets decides
 * whether a column has tags, and must not change the result. 64-bit integers among other numbers stay tagged. Some row must have a value; only rows
 * that are used count.
 */
export function untagged(column: Column, isUsed: (row: number) => boolean = () => true): Untagged {
  const { dictionary, rows, presence } = column;
  if (dictionary) {
    if (!hasTyped(dictionary)) return { column, types: [column.type] };
    // Entries may belong to rows that are not in the result.
    const used = new Set((column.data as Uint32Array).filter((_, row) => isPresent(presence, row)));
    const entries = untagged(dictionary, (entry) => used.has(entry));
    return { column: { ...column, type: entries.column.type, dictionary: entries.column }, types: entries.types };
  }
  const { type, data, aux } = column;
  const asItIs = { column, types: [type] };
  if (type !== BSON) return asItIs;
  const isLeftOut = (row: number): boolean => data[row] === data[row + 1] || !isUsed(row);
  const view = new DataView(aux!.buffer, aux!.byteOffset);
  const seen = new Set<number>();
  const cells = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    if (isLeftOut(row)) continue;
    const at = data[row] as number;
    const tag = view.getUint8(at);
    seen.add(tag);
    if (tag === DOUBLE) cells[row] = view.getFloat64(at + 1, true);
    else if (tag === INT32) cells[row] = view.getInt32(at + 1, true);
    else if (tag === DATE) cells[row] = view.getInt32(at + 5, true) * TWO_32 + view.getUint32(at + 1, true);
    else if (tag !== INT64) return asItIs;
  }
  const typed = (type: number, data: Column["data"]): Untagged => ({ column: { ...column, type, data, aux: undefined }, types: [type] });
  if (seen.has(INT64) && !seen.has(DATE)) {
    if (seen.size > 1) return { column, types: [I64, F64] };
    return typed(I64, BigInt64Array.from(cells, (_, row) => (isLeftOut(row) ? 0n : view.getBigInt64((data[row] as number) + 1, true))));
  }
  if (seen.has(DATE)) return seen.size > 1 ? asItIs : typed(DATE_F64, cells);
  return seen.has(DOUBLE) ? typed(F64, cells) : typed(I32, Int32Array.from(cells));
}

/** Whether some of the entries are numbers or dates with their type bytes: most dictionaries have none, and their rows need not be looked at. */
function hasTyped({ type, rows, data, aux }: Column): boolean {
  if (type !== BSON) return false;
  for (let row = 0; row < rows; row++) if (TYPED.has(aux![data[row] as number]!)) return true;
  return false;
}

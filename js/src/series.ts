// Divides columns by series.

import { setOwn } from "./own.js";
import type { Series } from "./shapes.js";
import type { Document } from "./types.js";

/** Represents `bigint`, for which JSON has no form, and distinguishes it from a string of its digits. */
const exact = (_: string, value: unknown): unknown => (typeof value === "bigint" ? { "": String(value) } : value);

/** A string has no fields, and the length of an array is not a field. */
const fieldOf = (value: any, name: string): unknown => (typeof value === "object" && value !== null && Object.prototype.propertyIsEnumerable.call(value, name) ? value[name] : undefined);

/**
 * Divides columns by the values at the path `by`, in order of first occurrence. A series keeps the order of its rows, and has all columns but that of `by`.
 * `hasField` says which rows have the field that `by` begins with.
 */
export function seriesOf(columns: Document, by: string, hasField: readonly boolean[]): Series<any>[] {
  const names = Object.keys(columns);
  const [field, ...rest] = by.split(".") as [string, ...string[]];
  const owners = columns[field] as ArrayLike<unknown> | undefined;
  // Without rows, a missing field cannot be detected.
  if (!names.some((name) => columns[name].length > 0)) return [];
  if (!owners) throw new TypeError(`No row has ${JSON.stringify(field)}, by which to divide them: does the projection leave it out?`);
  const found = new Map<unknown, { key: unknown; rows: number[] }>();
  for (let row = 0; row < owners.length; row++) {
    // A column of numbers has NaN for a row without a value, so it cannot tell.
    const key = hasField[row] ? rest.reduce(fieldOf, owners[row]) : undefined;
    const id = typeof key === "string" ? `s${key}` : typeof key === "object" ? JSON.stringify(key, exact) : key;
    let series = found.get(id);
    if (!series) found.set(id, (series = { key, rows: [] }));
    series.rows.push(row);
  }
  return [...found.values()].map(({ key, rows }) => {
    const own: Document = {};
    for (const name of names) {
      if (name === field && rest.length === 0) continue;
      const all = columns[name];
      const column = new all.constructor(rows.length);
      rows.forEach((row, at) => (column[at] = all[row]));
      setOwn(own, name, column);
    }
    return { key, columns: own };
  });
}

// Messages for mistakes that a call notices before it has done anything, so that it can wait for the message.

/** `insertColumns` was given an array as `meta`, with as many elements as there are rows. */
export const META_PER_ROW = "`meta` is one value for all rows, and this array has one a row: give it as a column, under the name of the metaField";

/** `open` does not know a storage of this name. */
export function unknownStorage(name: unknown): string {
  return `Unknown storage "${String(name)}": pass "indexeddb", "memory" or an object. For a file, use openFile("${String(name)}") of timepail/file`;
}

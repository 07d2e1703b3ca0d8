// Which columns an export has: every path that any of its rows has.

import type { Document } from "bson";
import type { Database } from "../../index.js";
import { bsonType, isPlain } from "../../bson.js";
import { leaves } from "../formats/flat.js";
import type { Cursor } from "../formats/model.js";

/** The paths of a cursor's rows, in order of first occurrence. */
export async function fieldsOfRows(cursor: Cursor): Promise<string[]> {
  const found = new Set<string>();
  const add = (path: string): unknown => found.add(path);
  for await (const document of cursor) leaves(document, add);
  return [...found];
}

/**
 * The paths of all measurements of a collection: those of the time, of the metadata, and then of the others.
 *
 * The summaries of buckets name the fields, so no column is decoded. A field that may hold documents is read, because a summary merges the fields of all documents
 * and hides empty ones.
 */
export async function fieldsOfCollection(db: Database, name: string, timeField: string, metaField: string | undefined, signal: AbortSignal): Promise<string[]> {
  const meta = new Set<string>();
  const fields = new Map<string, "plain" | "documents">([[timeField, "plain"]]);
  const summaries = [{ $project: { _id: 0, meta: 1, min: "$control.min", max: "$control.max" } }];
  for await (const { meta: series, min, max } of db.collection(`system.buckets.${name}`).aggregate<Document>(summaries, { signal })) {
    if (metaField !== undefined && series !== undefined) leaves({ [metaField]: series }, (path) => meta.add(path));
    for (const field of new Set([...Object.keys(min), ...Object.keys(max)])) {
      if (mayHoldDocuments(min[field], max[field])) fields.set(field, "documents");
      else if (!fields.has(field)) fields.set(field, "plain");
    }
  }
  const nested = [...fields.keys()].filter((field) => fields.get(field) === "documents");
  const inside = new Map<string, string[]>(nested.map((field) => [field, []]));
  if (nested.length > 0) {
    // A projection would interpret a dot as a path and `$` as an expression. For such names, read all fields.
    const projection: Record<string, 1> = nested.some((field) => /^\$|\./.test(field)) ? {} : Object.fromEntries(nested.map((field) => [field, 1] as const));
    for (const path of await fieldsOfRows(db.collection(name).find({}, { projection, signal, batchSize: 4096 }))) {
      const field = nested.find((each) => path === each || path.startsWith(`${each}.`));
      if (field !== undefined) inside.get(field)!.push(path);
    }
  }
  return [...new Set([timeField, ...meta, ...[...fields.keys()].flatMap((field) => inside.get(field) ?? [field])])];
}

/** Whether there may be a document between the minimum and the maximum of a field. Values are ordered by type first. */
function mayHoldDocuments(min: unknown, max: unknown): boolean {
  return !(isBelowDocuments(min) && isBelowDocuments(max)) && !(isAboveDocuments(min) && isAboveDocuments(max));
}

const BELOW: readonly unknown[] = ["MinKey", "Double", "Int32", "Long", "Decimal128", "BSONSymbol"];

function isBelowDocuments(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return typeof value !== "boolean";
  return !isPlain(value) && BELOW.includes(bsonType(value));
}

/** Arrays, and all types that sort after them. A DBRef is a document, although `bson` represents it as a class. */
function isAboveDocuments(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return typeof value === "boolean";
  return !isPlain(value) && bsonType(value) !== "DBRef" && !isBelowDocuments(value);
}

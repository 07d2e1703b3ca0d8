// Helpers of live queries: which collections a command reads, which limits it has, and whether two results are the same.

import type { Document } from "./types.js";

/** The collections that a find or an aggregate reads, including those of its stages. An extra one does no harm. */
export function collectionsOf(command: Document): Set<string> {
  const found = new Set<string>();
  const add = (name: unknown): void => {
    if (typeof name === "string") found.add(name.replace(/^system\.buckets\./, ""));
  };
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, part] of Object.entries(value as Document)) {
      if (/^\$(lookup|graphLookup|unionWith)$/.test(key)) {
        add(part);
        add(part?.from?.coll ?? part?.from);
        add(part?.coll);
      }
      visit(part);
    }
  };
  add(command["find"] ?? command["aggregate"]);
  visit(command["pipeline"]);
  return found;
}

/** Splits a command into its query and its limits. Limits apply to each command separately, and are not part of the query. */
export function divided({ signal, maxTimeMS, ...query }: Document): { query: Document; limits: Document } {
  return { query, limits: { ...(signal && { signal }), ...(maxTimeMS !== undefined && { maxTimeMS }) } };
}

/** Whether two results look the same to a reader. Values that cannot be inspected count as different. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Date) return Object.is(one.getTime(), (other as Date).getTime());
  if (ArrayBuffer.isView(one) || Array.isArray(one)) {
    const [first, second] = [one as unknown as ArrayLike<unknown>, other as ArrayLike<unknown>];
    if (first.length !== second.length) return false;
    for (let at = 0; at < first.length; at++) if (!isSame(first[at], second[at])) return false;
    return true;
  }
  const keys = Object.keys(one);
  const others = Object.keys(other);
  // The content of an instance without properties is unknown.
  if (keys.length === 0 && Object.getPrototypeOf(one) !== Object.prototype) return false;
  return keys.length === others.length && keys.every((key, at) => key === others[at] && isSame((one as Document)[key], (other as Document)[key]));
}

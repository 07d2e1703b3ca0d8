// The cursor of find: its options, its command, and columns.

import { DEPTH_MAX, bsonType, isOpaque, isPlain, tooDeep } from "./bson.js";
import { AbstractCursor } from "./cursor.js";
import type { Door } from "./door.js";
import { LiveQuery, type LiveOptions } from "./live.js";
import { QUERY_OPTIONS, READ_OPTIONS, checkNames, pick } from "./options.js";
import { setOwn } from "./own.js";
import type { CheckedProjection, Filter, ProjectionValue, SortOf } from "./schema.js";
import type { Columns, Projected, ProjectedColumns } from "./shapes.js";
import type { CollationOptions, Document, FindOptions, Hint, IndexKeys, Sort, SortDirection } from "./types.js";

/** Options of the command `find`. */
const OPTIONS = ["projection", "sort", "skip", "limit", "batchSize", "singleBatch", ...QUERY_OPTIONS] as const;

/**
 * The cursor of a query. Configure it first, then read it with `for await`, {@link next}, {@link toArray} or {@link toColumns}.
 *
 * @example
 * ```ts
 * const newest = await weather.find({ "station.id": 7 }).sort({ at: -1 }).limit(10).toArray();
 * ```
 */
export class FindCursor<TSchema = Document, TSource = TSchema, TColumns = Partial<Columns<TSchema>>> extends AbstractCursor<TSchema, TColumns> {
  #filter: Document;
  /** @internal */
  declare protected readonly options: FindOptions;

  /** @internal */
  constructor(door: Door, collection: string, filter: Document, options: FindOptions<any>) {
    super(door, collection, options);
    this.#filter = queryDocument(filter);
    checkNames(options, [...READ_OPTIONS, ...OPTIONS]);
  }

  /** Replaces the query. */
  filter(filter: Filter<TSource>): this {
    this.assertNew("filter");
    this.#filter = queryDocument(filter);
    return this;
  }

  /** Sets the sort order: `sort({ at: -1 })`, `sort("at", -1)`, `sort([["station", 1], ["at", -1]])`. */
  sort(sort: SortOf<TSource>, direction?: SortDirection): this {
    return this.set("sort", (typeof sort === "string" && direction !== undefined ? [[sort, direction]] : sort) as Sort);
  }

  /** Returns at most `limit` documents. 0 means no limit. */
  limit(limit: number): this {
    return this.set("limit", limit);
  }

  /** Leaves out the first `skip` documents. */
  skip(skip: number): this {
    return this.set("skip", skip);
  }

  /**
   * Sets the fields to return. The result type is inferred from the projection. If it cannot be inferred, state it as `T`; it is then not checked.
   *
   * If there are no rows, {@link toColumns} has an empty column for each field named.
   */
  project<T extends Document = never>(projection: [T] extends [never] ? never : Document): FindCursor<T, TSource, Columns<T>>;
  project<const P extends Readonly<Record<string, ProjectionValue>>>(projection: P & CheckedProjection<TSource, P>): FindCursor<Projected<TSource, P>, TSource, ProjectedColumns<TSource, P>>;
  project(projection: Document): any {
    checkDocument(projection, "projection");
    return this.set("projection", projection, "project");
  }

  /** Sets how many documents a batch has. */
  batchSize(size: number): this {
    return this.set("batchSize", size);
  }

  /** Sets the index to use. */
  hint(hint: Hint): this {
    return this.set("hint", hint);
  }

  /** Sets the language rules for comparing strings. */
  collation(collation: CollationOptions): this {
    return this.set("collation", collation);
  }

  /** Sets a comment, which `explain` shows. */
  comment(comment: unknown): this {
    return this.set("comment", comment);
  }

  /** Sets how many milliseconds the engine may work on all batches together. 0 means no limit. */
  maxTimeMS(milliseconds: number): this {
    return this.set("maxTimeMS", milliseconds);
  }

  /** Passes every document through `transform`. */
  override map<T>(transform: (document: TSchema) => T): FindCursor<T, TSource, TColumns> {
    return super.map(transform) as FindCursor<T, TSource, TColumns>;
  }

  /**
   * Returns a live query: its result changes when measurements are inserted, deleted or expired, here and in other tabs. An extension to the driver.
   *
   * @example
   * ```ts
   * const stop = weather.find({ station: 7 }).sort({ at: -1 }).limit(100).live().subscribe((rows) => draw(rows));
   * ```
   */
  live(options: LiveOptions & { columns: true }): LiveQuery<TColumns>;
  live(options?: LiveOptions): LiveQuery<TSchema[]>;
  live(options: LiveOptions = {}): any {
    return new LiveQuery<any>(this.door, this.openingCommand(true), this.reader(this.clone(), options.columns), options);
  }

  /** Returns a new cursor with the same query and options, but without the functions given to {@link map}. */
  clone(): FindCursor<TSchema, TSource, TColumns> {
    return new FindCursor<TSchema, TSource, TColumns>(this.door, this.collection, this.#filter, this.options);
  }

  /** @internal */
  protected override get stages(): readonly Document[] {
    return [{ $project: this.options.projection }];
  }

  /** @internal */
  protected override openingCommand(wantsAll: boolean): Document {
    const { limit = 0, sort, singleBatch } = this.options;
    const given = {
      ...this.options,
      sort: sort === undefined ? sort : sortDocument(sort),
      // As in the driver, a negative limit means a limit and a single batch.
      limit: Math.abs(limit) || undefined,
      batchSize: this.sizeFor(wantsAll),
      singleBatch: singleBatch || limit < 0 || undefined,
    };
    return { find: this.collection, filter: this.#filter, ...pick(given, ...OPTIONS) };
  }
}

/** Refuses non-objects, arrays, and class instances without visible fields, such as a promise, which as a filter would match everything. */
export function checkDocument(value: unknown, what: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError(`The ${what} must be an object`);
  if (isOpaque(value)) throw new TypeError(`The ${what} is not a plain object: is an await missing?`);
}

/** A query in the form that the command takes. */
export function queryDocument(filter: unknown): Document {
  checkDocument(filter, "filter");
  return withNulls(filter) as Document;
}

/**
 * Replaces `undefined` by `null`, as the official driver does. Measurements leave it out, but a query that lost a condition would match
 * more than was meant, and `deleteMany` would delete it.
 */
export function withNulls(value: unknown, depth = 0, root = value): unknown {
  const inner = (part: unknown): unknown => withNulls(part, depth + 1, root);
  if (depth > DEPTH_MAX) throw tooDeep(root);
  if (value === undefined) return null;
  if (typeof value === "function") throw new TypeError("A query cannot contain a function");
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Map) return new Map([...value].map(([key, part]) => [key, inner(part)]));
  // Values with a BSON form of their own stay as they are.
  if (!isPlain(value) && (bsonType(value) !== undefined || ArrayBuffer.isView(value) || isOpaque(value) || "toBSON" in value)) return value;
  // `Object.entries` takes four times as long, and every query is copied.
  const copy: Document = {};
  for (const key of Object.keys(value)) setOwn(copy, key, inner((value as Document)[key]));
  return copy;
}

const DIRECTIONS: Readonly<Record<string, number>> = { 1: 1, asc: 1, ascending: 1, "-1": -1, desc: -1, descending: -1 };

/** A sort in the form that the command takes. It is a `Map`, because an object would put keys that look like numbers first. */
export function sortDocument(sort: Sort | IndexKeys, value: (direction: unknown) => unknown = directionNumber): Map<string, unknown> {
  const pairs: Iterable<readonly [string, unknown]> =
    typeof sort === "string"
      ? [[sort, 1]]
      : sort instanceof Map
        ? sort
        : Array.isArray(sort)
          ? sortPairs(sort)
          : Object.entries(sort);
  return new Map([...pairs].map(([key, direction]) => [key, value(direction)]));
}

function sortPairs(sort: readonly unknown[]): (readonly [string, unknown])[] {
  if (sort.length === 2 && typeof sort[0] === "string" && typeof DIRECTIONS[String(sort[1])] === "number") return [[sort[0], sort[1]]];
  return sort.map((entry) => (Array.isArray(entry) ? [String(entry[0]), entry[1] as unknown] : [String(entry), 1]));
}

function directionNumber(value: unknown): number {
  const number = DIRECTIONS[String(value)];
  if (typeof number !== "number") throw new TypeError(`The sort direction must be 1 or -1, not ${JSON.stringify(value)}`);
  return number;
}

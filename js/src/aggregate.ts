// The cursor of aggregate.

import { AbstractCursor } from "./cursor.js";
import type { Door } from "./door.js";
import { LiveQuery, type LiveOptions } from "./live.js";
import { QUERY_OPTIONS, READ_OPTIONS, checkNames, pick } from "./options.js";
import { sortDocument, withNulls } from "./find.js";
import type { CheckedProjection, Filter, ProjectionValue, SortOf } from "./schema.js";
import type { Columns, Grouped, Projected, ProjectedColumns } from "./shapes.js";
import type { AggregateOptions, Document, Downsample, Sort } from "./types.js";

/**
 * The cursor of a pipeline. Read it with `for await`, {@link next}, {@link toArray} or {@link toColumns}.
 *
 * @example
 * ```ts
 * const hourly = await weather
 *   .aggregate([{ $group: { _id: { $dateTrunc: { date: "$at", unit: "hour" } }, temp: { $avg: "$temp" } } }, { $sort: { _id: 1 } }])
 *   .toArray();
 * ```
 */
export class AggregationCursor<TSchema = Document, TColumns = Partial<Columns<TSchema>>> extends AbstractCursor<TSchema, TColumns> {
  /** The stages. This is a copy of the array that was given. */
  readonly pipeline: Document[];
  /** @internal */
  declare protected readonly options: AggregateOptions;

  /** @internal */
  constructor(door: Door, collection: string, pipeline: readonly Document[], options: AggregateOptions) {
    super(door, collection, options);
    if (!Array.isArray(pipeline)) throw new TypeError("The pipeline must be an array of stages");
    this.pipeline = [...pipeline];
    checkNames(options, [...READ_OPTIONS, "batchSize", ...QUERY_OPTIONS]);
  }

  /** Adds a stage at the end. */
  addStage<T = Document>(stage: Document): AggregationCursor<T> {
    this.assertNew("addStage");
    this.pipeline.push(stage);
    return this as unknown as AggregationCursor<T>;
  }

  /** Adds a `$match`. */
  match(filter: Filter<TSchema>): this {
    return this.#add("$match", filter);
  }

  /** Adds a `$group`. The result type is inferred from the accumulators. If it cannot be inferred, state it as `T`; it is then not checked. */
  group<T = never>($group: [T] extends [never] ? never : Document): AggregationCursor<T, Columns<T>>;
  group<const G extends Document>($group: G): AggregationCursor<Grouped<TSchema, G>, Columns<Grouped<TSchema, G>>>;
  group($group: Document): any {
    return this.#add("$group", $group);
  }

  /** Adds a `$project`. The result type is inferred from the projection. If it cannot be inferred, state it as `T`; it is then not checked. */
  project<T = never>($project: [T] extends [never] ? never : Document): AggregationCursor<T, Columns<T>>;
  project<const P extends Readonly<Record<string, ProjectionValue>>>($project: P & CheckedProjection<TSchema, P>): AggregationCursor<Projected<TSchema, P>, ProjectedColumns<TSchema, P>>;
  project($project: Document): any {
    return this.#add("$project", $project);
  }

  /** Adds a `$sort`, in any form that `find().sort()` takes. */
  sort(sort: SortOf<TSchema>): this {
    return this.#add("$sort", sortDocument(sort as Sort));
  }

  /** Adds a `$limit`. */
  limit(limit: number): this {
    return this.#add("$limit", limit);
  }

  /** Adds a `$skip`. */
  skip(skip: number): this {
    return this.#add("$skip", skip);
  }

  /** Adds an `$unwind`: `unwind("$path")`. */
  unwind<T = Document>(unwind: Document | string): AggregationCursor<T> {
    return this.#add("$unwind", unwind) as unknown as AggregationCursor<T>;
  }

  /** Adds a `$downsample`, an extension of timepail: it picks the rows that show the line drawn by all rows. */
  downsample(downsample: Downsample<TSchema>): this {
    return this.#add("$downsample", downsample);
  }

  #add(name: string, argument: unknown): this {
    return this.addStage({ [name]: argument }) as unknown as this;
  }

  /** Sets how many milliseconds the engine may work on all batches together. 0 means no limit. */
  maxTimeMS(milliseconds: number): this {
    return this.set("maxTimeMS", milliseconds);
  }

  /** Sets how many documents a batch has. */
  batchSize(size: number): this {
    return this.set("batchSize", size);
  }

  /** Passes every document through `transform`. */
  override map<T>(transform: (document: TSchema) => T): AggregationCursor<T, TColumns> {
    return super.map(transform) as AggregationCursor<T, TColumns>;
  }

  /**
   * Returns a live query: its result changes when measurements are inserted, deleted or expired, here and in other tabs. An extension to the driver.
   *
   * @example
   * ```ts
   * const stop = weather.aggregate().group({ _id: "$station", mean: { $avg: "$temp" } }).live().subscribe((rows) => draw(rows));
   * ```
   */
  live(options: LiveOptions & { columns: true }): LiveQuery<TColumns>;
  live(options?: LiveOptions): LiveQuery<TSchema[]>;
  live(options: LiveOptions = {}): any {
    return new LiveQuery<any>(this.door, this.openingCommand(true), this.reader(this.clone(), options.columns), options);
  }

  /** Returns a new cursor with the same pipeline and options, but without the functions given to {@link map}. */
  clone(): AggregationCursor<TSchema, TColumns> {
    return new AggregationCursor<TSchema, TColumns>(this.door, this.collection, this.pipeline, this.options);
  }

  /** @internal */
  protected override get stages(): readonly Document[] {
    return this.pipeline;
  }

  /** @internal */
  protected override openingCommand(wantsAll: boolean): Document {
    return { aggregate: this.collection, pipeline: withNulls(this.pipeline), cursor: { batchSize: this.sizeFor(wantsAll) }, ...pick(this.options, ...QUERY_OPTIONS) };
  }
}

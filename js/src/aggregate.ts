// The cursor of aggregate.

import { AbstractCursor, BIG_BATCH } from "./cursor.js";
import { pick, type Door } from "./door.js";
import { sortDocument, withNulls } from "./find.js";
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
export class AggregationCursor<TSchema = Document> extends AbstractCursor<TSchema> {
  readonly #collection: string;
  /** The stages. This is a copy of the array that was given. */
  readonly pipeline: Document[];
  readonly #options: AggregateOptions;

  /** @internal */
  constructor(door: Door, collection: string, pipeline: Document[], options: AggregateOptions) {
    super(door, collection, options);
    if (!Array.isArray(pipeline)) throw new TypeError("The pipeline must be an array of stages");
    this.#collection = collection;
    this.pipeline = [...pipeline];
    this.#options = options;
  }

  /** Adds a stage at the end. */
  addStage<T = Document>(stage: Document): AggregationCursor<T> {
    this.assertNew("addStage");
    this.pipeline.push(stage);
    return this as unknown as AggregationCursor<T>;
  }

  /** Adds a `$match`. */
  match(filter: Document): this {
    return this.#add("$match", filter);
  }

  /** Adds a `$group`. `T` is the type of the result; it is not checked. */
  group<T = Document>($group: Document): AggregationCursor<T> {
    return this.#add("$group", $group) as unknown as AggregationCursor<T>;
  }

  /** Adds a `$project`. `T` is the type of the result; it is not checked. */
  project<T = Document>($project: Document): AggregationCursor<T> {
    return this.#add("$project", $project) as unknown as AggregationCursor<T>;
  }

  /** Adds a `$sort`, in any form that `find().sort()` takes. */
  sort(sort: Sort): this {
    return this.#add("$sort", sortDocument(sort));
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

  /** Passes every document through `transform`. */
  override map<T>(transform: (document: TSchema) => T): AggregationCursor<T> {
    return super.map(transform) as AggregationCursor<T>;
  }

  /** Returns a new cursor with the same pipeline and options, but without the functions given to {@link map}. */
  clone(): AggregationCursor<TSchema> {
    return new AggregationCursor<TSchema>(this.door, this.#collection, this.pipeline, this.#options);
  }

  /** @internal */
  protected override get batchSizeSet(): number | undefined {
    return this.#options.batchSize;
  }

  /** @internal */
  protected override openingCommand(wantsAll: boolean): Document {
    const batchSize = this.#options.batchSize ?? (wantsAll ? BIG_BATCH : undefined);
    const cursor = batchSize === undefined ? {} : { batchSize };
    const options = pick(this.#options, "hint", "collation", "let", "allowDiskUse", "comment");
    return { aggregate: this.#collection, pipeline: withNulls(this.pipeline), cursor, ...options };
  }
}

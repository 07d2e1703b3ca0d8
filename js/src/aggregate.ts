// The cursor of aggregate.

import { AbstractCursor, BIG_BATCH } from "./cursor.js";
import { pick, type Door } from "./door.js";
import { withNulls } from "./find.js";
import type { AggregateOptions, Document } from "./types.js";

/**
 * The documents that a pipeline gives. Read it with `for await`, {@link next}, {@link toArray} or {@link toColumns}.
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
  /** The stages; an array of its own. */
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

  /** Adds a stage behind the others. */
  addStage<T = Document>(stage: Document): AggregationCursor<T> {
    this.assertNew("addStage");
    this.pipeline.push(stage);
    return this as unknown as AggregationCursor<T>;
  }

  /** Every document goes through `transform`. */
  override map<T>(transform: (document: TSchema) => T): AggregationCursor<T> {
    return super.map(transform) as AggregationCursor<T>;
  }

  /** A cursor with the same pipeline and options, not started, without what {@link map} was given. */
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

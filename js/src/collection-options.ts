// The options of collections.

import type { BSONReadOptions, CollationOptions, CommandOptions, Document } from "./types.js";

/** The fields and buckets of a time-series collection. */
export interface TimeSeriesCollectionOptions<TSchema = Document> {
  /** The top-level field that holds the `Date` of every measurement. */
  timeField: keyof TSchema & string;
  /** The field that names the source of a measurement. Measurements with equal metadata share buckets. Default: none. */
  metaField?: keyof TSchema & string | undefined;
  /** The rough distance between measurements of one source. It decides how long a bucket is: an hour, a day or 30 days. Default `"seconds"`. */
  granularity?: "seconds" | "minutes" | "hours" | undefined;
  /** The longest time of one bucket, in seconds. Replaces `granularity`, and requires an equal `bucketRoundingSeconds`. */
  bucketMaxSpanSeconds?: number | undefined;
  /** The start of a bucket is rounded down to a multiple of this, in seconds. Must equal `bucketMaxSpanSeconds`. */
  bucketRoundingSeconds?: number | undefined;
}

/** Which measurements are one and the same, and which of them stays. An extension of timepail. */
export interface DedupeOptions<TSchema = Document> {
  /**
   * Fields that tell measurements of the same source and time apart, such as a channel. Dotted paths lead into documents. Time and metadata always count. Default: none.
   */
  by?: readonly ((keyof TSchema & string) | `${keyof TSchema & string}.${string}`)[] | undefined;
  /** `"last"` (default): a later one replaces an earlier one, whole. `"first"`: later ones are ignored. */
  keep?: "first" | "last" | undefined;
}

/** Options of {@link Database.createCollection}. */
export interface CreateCollectionOptions<TSchema = Document> extends CollectionOptions, CommandOptions {
  /** The time field, the metadata field and the granularity. */
  timeseries: TimeSeriesCollectionOptions<TSchema>;
  /** Deletes measurements older than this, in seconds, whole buckets at a time. Default: keeps them for ever. */
  expireAfterSeconds?: number | undefined;
  /** Deletes the oldest buckets when the stored buckets exceed this many bytes. An extension of timepail. Default: no limit. */
  maxBytes?: number | undefined;
  /**
   * Measurements with the same metadata, the same time and equal values of the fields in `by` are one measurement: what is sent again is not stored twice. An extension
   * of timepail. Default: every inserted document is a measurement of its own.
   */
  dedupe?: DedupeOptions<TSchema> | undefined;
  /** Language rules for comparing strings, the default for all queries of the collection. Default: byte by byte. */
  collation?: CollationOptions | undefined;
  /**
   * What to do if the collection exists with other options. `"modify"` makes them these, as far as the command `collMod` can: `expireAfterSeconds`, `maxBytes`,
   * `dedupe`, and `granularity` or a span that is longer. Default: fails with `NamespaceExists`. An extension of timepail.
   */
  ifExists?: "modify" | undefined;
  /** Accepted, without an effect. */
  storageEngine?: Document | undefined;
  /** Accepted, without an effect. */
  indexOptionDefaults?: Document | undefined;
}

/** Options of {@link Database.collection}. */
export interface CollectionOptions extends BSONReadOptions {
  /** Adds an `ObjectId` as `_id`, in first position, to every inserted document that has none. Default: the option of `open`. */
  generateIds?: boolean | undefined;
}

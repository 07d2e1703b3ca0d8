// Public types. Names and shapes are those of the official Node driver where it has them.

import type { BSONRegExp, Int32, Double, Long, ObjectId } from "bson";
import type { HostStorage } from "./storage.js";

/** Any document. */
export interface Document {
  // `any`, as in the driver: untyped collections are read without casts.
  [key: string]: any;
}

/** A document that may have an `_id`: measurements need none. */
export type MaybeId<TSchema> = TSchema & { _id?: unknown };

// ---------------------------------------------------------------------------------------------------------- filters

/** What a field may be compared with: its type, or the type of its elements; a number also by `Int32`, `Long`, `Double`. */
export type FilterValue<T> =
  | T
  | (T extends readonly (infer U)[] ? U | readonly U[] : never)
  | (T extends number | bigint ? number | bigint | Int32 | Long | Double : never)
  | (T extends string ? RegExp | BSONRegExp : never)
  | null;

/** Operators of one field. */
export interface FilterOperators<T> {
  $eq?: FilterValue<T>;
  $ne?: FilterValue<T>;
  $gt?: FilterValue<T>;
  $gte?: FilterValue<T>;
  $lt?: FilterValue<T>;
  $lte?: FilterValue<T>;
  $in?: readonly FilterValue<T>[];
  $nin?: readonly FilterValue<T>[];
  $not?: FilterOperators<T> | RegExp;
  $exists?: boolean;
  $type?: number | string | readonly (number | string)[];
  $mod?: readonly [number, number];
  $regex?: RegExp | BSONRegExp | string;
  $options?: string;
  $all?: readonly unknown[];
  $elemMatch?: Document;
  $size?: number;
  $geoWithin?: Document;
  $geoIntersects?: Document;
  $bitsAllClear?: unknown;
  $bitsAllSet?: unknown;
  $bitsAnyClear?: unknown;
  $bitsAnySet?: unknown;
}

/** A value to be equal to, or operators. */
export type Condition<T> = FilterValue<T> | FilterOperators<T>;

/** Operators beside the fields. Being a `Document` it lets dotted paths through. */
export interface RootFilterOperators<TSchema> extends Document {
  $and?: readonly Filter<TSchema>[];
  $or?: readonly Filter<TSchema>[];
  $nor?: readonly Filter<TSchema>[];
  $expr?: unknown;
  $comment?: unknown;
}

/** A query. Known fields are checked against the schema; dotted paths such as `"station.id"` are taken as they are. */
export type Filter<TSchema = Document> = {
  [P in keyof MaybeId<TSchema>]?: Condition<MaybeId<TSchema>[P]>;
} & RootFilterOperators<MaybeId<TSchema>>;

// ---------------------------------------------------------------------------------------------------------- options

/** One direction of a sort. */
export type SortDirection = 1 | -1 | "asc" | "desc" | "ascending" | "descending";

/** A field (ascending), fields, or fields with directions. A `Map` or pairs keep the order of keys that look like numbers. */
export type Sort =
  | string
  | readonly string[]
  | { readonly [key: string]: SortDirection }
  | ReadonlyMap<string, SortDirection>
  | readonly (readonly [string, SortDirection])[]
  | readonly [string, SortDirection];

/** Which index to use: its name or its key pattern. */
export type Hint = string | Document;

/** What an index is over: fields with 1, -1, "hashed", "2dsphere" or "2d", in any form that a sort has. A metaField `meta` may be `"meta.$**"`. */
export type IndexKeys = string | readonly (string | readonly [string, 1 | -1 | "hashed" | "2dsphere" | "2d"])[] | Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** Options of {@link Collection.createIndex}. */
export interface CreateIndexOptions {
  /** Its name; without one it is made of the keys. */
  name?: string;
  /** Buckets without any of its fields are not in it. Not with fields of measurements. */
  sparse?: boolean;
  /** Queries do not use it. */
  hidden?: boolean;
  /** Only buckets in which a measurement may match are in it. */
  partialFilterExpression?: Document;
  /** The age at which the buckets in it are deleted. Only over the time, with a filter on the metadata. */
  expireAfterSeconds?: number;
  collation?: CollationOptions;
  /** Of a "2d" index: the least coordinate. Default -180. */
  min?: number;
  /** Of a "2d" index: the greatest coordinate. Default 180. */
  max?: number;
  /** Of a "2d" index: kept, and shown. */
  bits?: number;
  /** Of a "2dsphere" index: kept, and shown. */
  "2dsphereIndexVersion"?: number;
}

/** An index to make. */
export interface IndexDescription extends CreateIndexOptions {
  key: IndexKeys;
}

/** An index as it is listed. */
export interface IndexInfo extends CreateIndexOptions {
  v: number;
  key: Document;
  name: string;
}

/** Language rules for comparing strings. */
export interface CollationOptions {
  locale: string;
  caseLevel?: boolean;
  caseFirst?: string;
  strength?: number;
  numericOrdering?: boolean;
  alternate?: string;
  maxVariable?: string;
  backwards?: boolean;
  normalization?: boolean;
}

/** How BSON values become JavaScript values. */
export interface BSONReadOptions {
  /** 64-bit integers within ±2^53 become `number`, others `Long`. Default true. */
  promoteLongs?: boolean;
  /** Numbers become `number`. With `false` they stay `Double`, `Int32`, `Long`. Default true. */
  promoteValues?: boolean;
  /** Binary values of subtype 0 become `Uint8Array`. Default false. */
  promoteBuffers?: boolean;
  /** Regular expressions stay `BSONRegExp`. Default false. */
  bsonRegExp?: boolean;
  /** 64-bit integers become `bigint`; not together with `promoteLongs: false` or `promoteValues: false`. Default false. */
  useBigInt64?: boolean;
}

/** What every command may carry. */
export interface CommandOptions {
  /** Any value, shown by `explain`. */
  comment?: unknown;
}

/** Options of {@link Collection.find}. */
export interface FindOptions extends BSONReadOptions, CommandOptions {
  projection?: Document;
  sort?: Sort;
  skip?: number;
  /** At most this many documents; 0 is no limit; a negative number is its absolute value in a single batch. */
  limit?: number;
  /** Documents a batch. Default: 101 in the first batch when iterating, as many as fit otherwise. */
  batchSize?: number;
  /** End after the first batch. */
  singleBatch?: boolean;
  hint?: Hint;
  collation?: CollationOptions;
  let?: Document;
  allowDiskUse?: boolean;
}

/** The stage `$downsample`, an extension: of many rows those that show the line which all of them draw. Rows without a finite number are left out. */
export interface Downsample<TSchema = Document> {
  /** The path of the number that is drawn. */
  field: (keyof TSchema & string) | (string & {});
  /** Most rows of a partition, 2 or more; 4 or more for `m4`. */
  points: number;
  /** The one field of dates or numbers along which it is drawn, ascending: `{ at: 1 }`. */
  sortBy: Readonly<Record<string, 1>>;
  /**
   * - `lttb`, the default: the rows of the largest triangles, of equally many rows each
   * - `minmax`: the least and the greatest row of each slice of time
   * - `m4`: the first and the last one as well
   */
  method?: "lttb" | "minmax" | "m4";
  /** What tells lines apart: an expression, such as `"$station"`. */
  partitionBy?: unknown;
}

/** Options of {@link Collection.aggregate}. */
export interface AggregateOptions extends BSONReadOptions, CommandOptions {
  /** Documents a batch, as in {@link FindOptions}. */
  batchSize?: number;
  hint?: Hint;
  collation?: CollationOptions;
  /** Variables of the pipeline, `$$name` in expressions. */
  let?: Document;
  allowDiskUse?: boolean;
}

/** How much the `explain` of a cursor says: the plan, what became of it, and what became of the plans that were rejected (there are none). */
export type ExplainVerbosity = "queryPlanner" | "executionStats" | "allPlansExecution";

/** Options of {@link Collection.insertMany}. */
export interface InsertManyOptions extends CommandOptions {
  /** Stop at the first refused document. Default true. `false` is faster and stores everything that can be stored. */
  ordered?: boolean;
  bypassDocumentValidation?: boolean;
}

/** Options of {@link Collection.insertOne}. */
export type InsertOneOptions = Omit<InsertManyOptions, "ordered">;

/** Options of {@link Collection.insertColumns}. */
export interface InsertColumnsOptions extends InsertManyOptions {
  /** The metadata of every row. Without it the rows have none, unless the columns include the metaField. */
  meta?: unknown;
}

/** Options of {@link Collection.deleteMany} and {@link Collection.deleteOne}. */
export interface DeleteOptions extends CommandOptions {
  ordered?: boolean;
  collation?: CollationOptions;
  hint?: Hint;
  let?: Document;
}

/** Options of {@link Collection.updateMany}. */
export interface UpdateOptions extends DeleteOptions {
  arrayFilters?: Document[];
  /** Refused where it is true. */
  upsert?: boolean;
}

/** Options of {@link Collection.findOneAndDelete}. */
export interface FindOneAndDeleteOptions extends CommandOptions {
  projection?: Document;
  sort?: Sort;
  hint?: Hint;
  collation?: CollationOptions;
  let?: Document;
}

/** Options of {@link Collection.countDocuments}. */
export interface CountDocumentsOptions extends CommandOptions {
  limit?: number;
  skip?: number;
  hint?: Hint;
  collation?: CollationOptions;
}

/** Options of {@link Collection.distinct}. */
export interface DistinctOptions extends CommandOptions {
  hint?: Hint;
  collation?: CollationOptions;
}

/** How a collection keeps its measurements. */
export interface TimeSeriesCollectionOptions {
  /** Top-level field with the `Date` of every measurement. */
  timeField: string;
  /** Field that names the source of a measurement; measurements of equal metadata share buckets. */
  metaField?: string;
  /** Rough distance between measurements of one source. Default `"seconds"`. */
  granularity?: "seconds" | "minutes" | "hours";
  /** Longest time of one bucket, seconds; together with an equal `bucketRoundingSeconds`, in place of `granularity`. */
  bucketMaxSpanSeconds?: number;
  bucketRoundingSeconds?: number;
}

/** Options of {@link Database.createCollection}. */
export interface CreateCollectionOptions extends CollectionOptions, CommandOptions {
  timeseries: TimeSeriesCollectionOptions;
  /** Measurements older than this are removed, whole buckets at a time. */
  expireAfterSeconds?: number;
  /** When the stored buckets have more bytes than this, the oldest are removed. An extension of timepail. */
  maxBytes?: number;
  collation?: CollationOptions;
  storageEngine?: Document;
  indexOptionDefaults?: Document;
}

/** Options of {@link Database.collection}. */
export interface CollectionOptions extends BSONReadOptions {
  /** Put an `ObjectId` first, as `_id`, into every inserted document that has none. Default: as the database was opened. */
  generateIds?: boolean;
}

/** Options of {@link Database.listCollections}. */
export interface ListCollectionsOptions extends BSONReadOptions, CommandOptions {
  nameOnly?: boolean;
  authorizedCollections?: boolean;
  batchSize?: number;
}

/** Options of {@link Database.command}. */
export interface RunCommandOptions extends BSONReadOptions, CommandOptions {}

/** Where the WebAssembly module comes from: an address, an answer, its bytes, or the module compiled already. */
export type WasmSource = string | URL | Response | BufferSource | WebAssembly.Module;

/**
 * Parameters of the engine, under the names and with the defaults of the server's, where they stand in `setParameter` of its configuration.
 * `db.command({ getParameter: "*" })` shows them. They hold for this opening of the database; nothing of them is stored.
 */
export interface EngineParameters {
  /** Most measurements of a bucket, from 1 to 1 000 000. Default 1000. */
  timeseriesBucketMaxCount?: number;
  /** Most bytes of a bucket, from 1 to 12 582 912. Default 128 000. */
  timeseriesBucketMaxSize?: number;
  /** A bucket of fewer measurements may pass `timeseriesBucketMaxSize`, for the sake of large ones; 1 allows none to. Default 10. */
  timeseriesBucketMinCount?: number;
  /** However many buckets share `cacheBytes`, each may have this many bytes. Default 5120. */
  timeseriesBucketMinSize?: number;
  /** A value of more bytes counts as it is until it is stored; a smaller one only by what it takes compressed. Default 32. */
  timeseriesLargeMeasurementThreshold?: number;
  /** Above this much memory, in bytes, open buckets that wait for measurements are put aside. 0 or less is the default, 16 MiB. */
  timeseriesIdleBucketExpiryMemoryUsageThreshold?: number;
  /** At most one more than this many are put aside at a time, from 2. Default 3. */
  timeseriesIdleBucketExpiryMaxCountPerAttempt?: number;
  /** How often a stored bucket is looked for again when others were changing it. Default 16. */
  timeseriesMaxRetriesForWriteConflictsOnReopening?: number;
  /** How many further ids are drawn for a new bucket whose id is taken. Default 10. */
  timeseriesInsertMaxRetriesOnDuplicates?: number;
  /** Bytes that all open and archived buckets share: with many of them each is closed earlier. On the server the cache of its storage. Default 256 MiB. */
  cacheBytes?: number;
}

/** Options of `open`. */
export interface OpenOptions {
  /** Default: `"indexeddb"` where it exists, else `"memory"`, which lives as long as the database is open. Or an object that keeps the entries, such as those of `timepail/sqlite`. */
  storage?: "indexeddb" | "memory" | HostStorage;
  /**
   * `"relaxed"` (default): a write resolves when the browser has it; it survives a crash of the page and of the browser, the last moments may be lost when
   * the machine loses power. `"strict"`: it resolves when it is on the disk. Of IndexedDB; other storages are told when they are made.
   */
  durability?: "relaxed" | "strict";
  /** Version of the buckets that are written: 2, compressed columns, or 1, plain documents. Every version is read. Default 2. */
  bucketVersion?: 1 | 2;
  /**
   * How buckets are filled, kept in memory and closed.
   *
   * @throws ServerError 2, `BadValue`, for a number out of range, 14, `TypeMismatch`, for what is no number, 72, `InvalidOptions`, for an unknown name
   */
  parameters?: EngineParameters;
  /** Default of {@link CollectionOptions.generateIds}. Default false: measurements need no `_id`. */
  generateIds?: boolean;
  /**
   * Delete what has expired this often, in milliseconds, even when nothing else happens. Without it a pass runs behind a command, at
   * most once a minute, and on `db.command({ expire: 1 })`.
   */
  retentionIntervalMS?: number;
  /** Where to load the WebAssembly module from, when it does not lie beside the package's JavaScript. The first `open` of a page decides. */
  wasm?: WasmSource | Promise<WasmSource>;
  /** The same for its second half, timepail-more.wasm: the first command loads it that is not among the most common, such as `aggregate`. */
  wasmMore?: WasmSource | Promise<WasmSource>;
}

/** What a listener of {@link Database.on} hears. */
export interface ChangeEvent {
  /** `expire` is what retention (`expireAfterSeconds`, `maxBytes`) has deleted; `replace` is what `$out` has written. */
  operation: "create" | "insert" | "update" | "delete" | "replace" | "expire" | "drop" | "dropDatabase";
  /** Name of the collection; not there where the whole database was dropped. */
  collection?: string;
  /** True for what this `Database` has done, false for what another tab or worker has. */
  local: boolean;
  /** How many measurements were inserted, changed or deleted. */
  count?: number;
  /** Of `expire`: how many buckets went. */
  buckets?: number;
  /** Of `expire`: bytes of their documents. */
  bytes?: number;
  /** Of `expire`: start of the oldest bucket that is left, `null` where nothing is or it is not known. */
  oldest?: Date | null;
}

// ---------------------------------------------------------------------------------------------------------- results

/** Result of {@link Collection.insertOne}. */
export interface InsertOneResult {
  acknowledged: boolean;
  /** The `_id` of the document; `undefined` when it has none. */
  insertedId: ObjectId | any;
}

/** Result of {@link Collection.insertMany}. */
export interface InsertManyResult {
  acknowledged: boolean;
  insertedCount: number;
  /** From the index of a document to its `_id`. A document without `_id` has no entry. */
  insertedIds: { [index: number]: ObjectId | any };
}

/** Result of {@link Collection.insertColumns}. */
export interface InsertColumnsResult {
  acknowledged: boolean;
  insertedCount: number;
}

/** Result of {@link Collection.deleteMany} and {@link Collection.deleteOne}. */
export interface DeleteResult {
  acknowledged: boolean;
  deletedCount: number;
}

/** What {@link Collection.updateMany} did. */
export interface UpdateResult {
  acknowledged: boolean;
  matchedCount: number;
  modifiedCount: number;
  upsertedCount: number;
  upsertedId: null;
}

/** Why one document was refused. */
export interface WriteError {
  index: number;
  code: number;
  errmsg: string;
  codeName?: string;
  keyPattern?: Document;
  keyValue?: Document;
}

/** One entry of {@link Database.listCollections}. */
export interface CollectionInfo extends Document {
  name: string;
  type?: string;
  options?: Document;
  info?: Document;
}

// ---------------------------------------------------------------------------------------------------------- columns

/** A column that {@link Collection.insertColumns} takes. In a plain array `undefined` is an absent cell. */
export type ColumnInput =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | BigInt64Array
  | readonly unknown[];

/** Columns by field name, all of the same length. */
export type ColumnsInput<TSchema extends Document = Document> = { readonly [P in keyof TSchema]?: ColumnInput };

/** The column that `toColumns` makes of a field of type T. */
export type ColumnOf<T> = 0 extends 1 & T
  ? any
  : [Exclude<T, undefined>] extends [number]
    ? Float64Array | Int32Array
    : [Exclude<T, undefined>] extends [Date]
      ? Float64Array
      : [Exclude<T, undefined>] extends [bigint | Long]
        ? BigInt64Array | (bigint | undefined)[]
        : (Exclude<T, undefined> | undefined)[];

/** What `toColumns` resolves to: one entry for each field that any row has. */
export type Columns<TSchema = Document> = { [P in keyof TSchema]: ColumnOf<TSchema[P]> };

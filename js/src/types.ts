// Public types. Names and shapes are those of the official Node driver where it has them.

import type { ObjectId } from "bson";
import type { Filter, Measurement, Projection, SortOf, UpdateFilter } from "./schema.js";
import type { HostStorage } from "./storage.js";

/** A document of any shape. */
export interface Document {
  // `any`, as in the driver: untyped collections are read without casts.
  [key: string]: any;
}

export type * from "./collection-options.js";

// ---------------------------------------------------------------------------------------------------------- options

/** A direction of a sort: ascending or descending. */
export type SortDirection = 1 | -1 | "asc" | "desc" | "ascending" | "descending";

/** The sort order: a field (ascending), several fields, or fields with directions. Use a `Map` or pairs if keys look like numbers, because an object reorders them. */
export type Sort =
  | string
  | readonly string[]
  | { readonly [key: string]: SortDirection }
  | ReadonlyMap<string, SortDirection>
  | readonly (readonly [string, SortDirection])[]
  | readonly [string, SortDirection];

/** The index to use: its name or its key pattern. */
export type Hint = string | Document;

/** The keys of an index: fields with 1, -1, "hashed", "2dsphere" or "2d", in any form that a sort takes. For a metaField `meta`, `"meta.$**"` makes a wildcard index. */
export type IndexKeys = string | readonly (string | readonly [string, 1 | -1 | "hashed" | "2dsphere" | "2d"])[] | Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** Options of {@link Collection.createIndex}. */
export interface CreateIndexOptions {
  /** Name of the index. Default: made of the keys, such as `station_1_at_-1`. */
  name?: string | undefined;
  /** Leaves out buckets that have none of the indexed fields. Not allowed with fields of measurements. */
  sparse?: boolean | undefined;
  /** Hides the index from queries. */
  hidden?: boolean | undefined;
  /** Indexes only buckets in which a measurement may match this filter. */
  partialFilterExpression?: Document | undefined;
  /** Deletes the buckets in the index at this age, in seconds. Only for an index on the time, with a `partialFilterExpression` on the metadata. */
  expireAfterSeconds?: number | undefined;
  /** Language rules of the indexed strings; see COMPAT.md for the queries that can use it. */
  collation?: CollationOptions | undefined;
  /** Of a "2d" index: the smallest coordinate. Default -180. */
  min?: number | undefined;
  /** Of a "2d" index: the largest coordinate. Default 180. */
  max?: number | undefined;
  /** Of a "2d" index: stored and shown, without an effect. */
  bits?: number | undefined;
  /** Of a "2dsphere" index: stored and shown, without an effect. */
  "2dsphereIndexVersion"?: number | undefined;
}

/** An index to create, for {@link Collection.createIndexes}. */
export interface IndexDescription extends CreateIndexOptions {
  key: IndexKeys;
}

/** An index, as {@link Collection.listIndexes} returns it. */
export interface IndexInfo extends CreateIndexOptions {
  v: number;
  key: Document;
  name: string;
}

/** Language rules for comparing strings. */
export interface CollationOptions {
  /** Such as `"de"`, or `"simple"` for comparison byte by byte. */
  locale: string;
  /** Compares case, but not accents. Only with strength 1. */
  caseLevel?: boolean | undefined;
  /** `"upper"`, `"lower"` or `"off"`. Default: as the locale does. */
  caseFirst?: string | undefined;
  /** 1 compares letters, 2 also accents, 3 also case; up to 5. Default 3. */
  strength?: number | undefined;
  /** Compares digits as numbers: "9" before "10". Default false. */
  numericOrdering?: boolean | undefined;
  /** `"non-ignorable"`, or `"shifted"`, which ignores spaces and punctuation. Default: as the locale does. */
  alternate?: string | undefined;
  /** What `alternate: "shifted"` ignores: `"punct"`. `"space"` is refused with it. */
  maxVariable?: string | undefined;
  /** Compares accents from the end. Only as the locale does. */
  backwards?: boolean | undefined;
  /** Has no effect: hosts always normalise. */
  normalization?: boolean | undefined;
}

/** Options for converting BSON values to JavaScript values. */
export interface BSONReadOptions {
  /** 64-bit integers within ±2^53 become `number`, others `Long`. Default true. */
  promoteLongs?: boolean | undefined;
  /** Numbers become `number`. With `false` they stay `Double`, `Int32`, `Long`. Default true. */
  promoteValues?: boolean | undefined;
  /** Binary values of subtype 0 become `Uint8Array`. Default false. */
  promoteBuffers?: boolean | undefined;
  /** Regular expressions stay `BSONRegExp`. Default false. */
  bsonRegExp?: boolean | undefined;
  /** 64-bit integers become `bigint`. Cannot be combined with `promoteLongs: false` or `promoteValues: false`. Default false. */
  useBigInt64?: boolean | undefined;
}

/** Options of every command. */
export interface CommandOptions {
  /** Any value, shown by `explain`. */
  comment?: unknown;
  /**
   * How many milliseconds the engine may work on the command, or on all batches of a cursor together. Default: 0, no limit.
   *
   * Beyond it, the command fails with `ServerError` 50 `MaxTimeMSExpired`.
   */
  maxTimeMS?: number | undefined;
  /**
   * Aborts the command: it rejects at once with the `reason` of the signal, and the engine stops working on it. A write that was sent is not undone, and rejects with
   * `AbortedWriteError`.
   */
  signal?: Host<"AbortSignal"> | undefined;
}

/** Options of {@link Collection.find}. */
export interface FindOptions<TSchema = Document> extends BSONReadOptions, CommandOptions {
  /** The fields to return, such as `{ _id: 0, temp: 1 }`. Default: all fields. */
  projection?: Projection<TSchema> | undefined;
  /** The sort order of the documents. */
  sort?: SortOf<TSchema> | undefined;
  /** How many documents to leave out at the start. Default 0. */
  skip?: number | undefined;
  /** Returns at most this many documents. 0 means no limit. A negative number is a limit of its absolute value, in a single batch. */
  limit?: number | undefined;
  /** How many documents a batch has. Default: 101 in the first batch when you iterate, otherwise as many as fit. */
  batchSize?: number | undefined;
  /** Ends the cursor after the first batch. */
  singleBatch?: boolean | undefined;
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
  /** Variables for the expressions of the query, `$$name`. */
  let?: Document | undefined;
  /** Accepted, without an effect. */
  allowDiskUse?: boolean | undefined;
}

/** The argument of the stage `$downsample`, an extension of timepail: it picks the rows that show the line drawn by all rows. Rows without a finite number are left out. */
export interface Downsample<TSchema = Document> {
  /** Path of the number to draw. */
  field: (keyof TSchema & string) | (string & {});
  /** Maximum number of rows of each partition: at least 2, and at least 4 for `m4`. */
  points: number;
  /** The horizontal axis: one field of dates or numbers, ascending, such as `{ at: 1 }`. */
  sortBy: Readonly<Record<string, 1>>;
  /**
   * - `lttb` (default): divides the rows into groups of equal size and keeps the row that forms the largest triangle with its neighbours
   * - `minmax`: keeps the smallest and the largest row of each slice of time
   * - `m4`: keeps the first and the last row of each slice as well
   */
  method?: "lttb" | "minmax" | "m4";
  /** An expression whose value identifies the line, such as `"$station"`. Default: all rows are one line. */
  partitionBy?: unknown;
}

/** Options of {@link Collection.aggregate}. */
export interface AggregateOptions extends BSONReadOptions, CommandOptions {
  /** How many documents a batch has, as in {@link FindOptions}. */
  batchSize?: number | undefined;
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
  /** Variables for the expressions of the pipeline, `$$name`. */
  let?: Document | undefined;
  /** Accepted, without an effect. */
  allowDiskUse?: boolean | undefined;
}

/** How much `explain` reports: only the plan, the plan with figures of its execution, or also the rejected plans (there are never any). */
export type ExplainVerbosity = "queryPlanner" | "executionStats" | "allPlansExecution";

/** Options of {@link Collection.insertMany}. */
export interface InsertManyOptions extends CommandOptions {
  /** Stops at the first refused document. Default true. With `false` the insert is faster and stores every document that can be stored. */
  ordered?: boolean | undefined;
  /** Accepted, without an effect. */
  bypassDocumentValidation?: boolean | undefined;
}

/** Options of {@link Collection.insertOne}. */
export type InsertOneOptions = Omit<InsertManyOptions, "ordered">;

/** Options of {@link Collection.insertColumns}. */
export interface InsertColumnsOptions extends InsertManyOptions {
  /** The metadata of all rows. Default: none, unless `columns` includes the metaField. */
  meta?: unknown;
  /**
   * The unit of numbers in the time column, which count from the epoch. Default: milliseconds. Without this option, numbers that as milliseconds are before 1971 are refused,
   * because they are nearly always seconds.
   */
  timeUnit?: "s" | "ms" | "us" | "ns" | undefined;
}

/** Options of {@link Collection.deleteMany} and {@link Collection.deleteOne}. */
export interface DeleteOptions extends CommandOptions {
  /** Has no effect on a single statement. */
  ordered?: boolean | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Variables for the expressions of the filter, `$$name`. */
  let?: Document | undefined;
}

/** Options of {@link Collection.updateMany}. */
export interface UpdateOptions extends DeleteOptions {
  /** Conditions for the array elements that `$[name]` in the update changes. */
  arrayFilters?: Document[] | undefined;
  /** Must not be true: an update cannot insert. */
  upsert?: boolean | undefined;
}

/** Options of {@link Collection.findOneAndDelete}. */
export interface FindOneAndDeleteOptions<TSchema = Document> extends CommandOptions {
  /** The fields to return. Default: all fields. */
  projection?: Projection<TSchema> | undefined;
  /** Deletes the first match in this order. */
  sort?: SortOf<TSchema> | undefined;
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
  /** Variables for the expressions of the filter, `$$name`. */
  let?: Document | undefined;
}

/** Options of {@link Collection.countDocuments}. */
export interface CountDocumentsOptions extends CommandOptions {
  /** Stops counting at this number. Default: no limit. */
  limit?: number | undefined;
  /** How many matches not to count. Default 0. */
  skip?: number | undefined;
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
}

/** Options of {@link Collection.distinct}. */
export interface DistinctOptions extends CommandOptions {
  /** The index to use. Default: the engine chooses. */
  hint?: Hint | undefined;
  /** Language rules for comparing strings. Default: those of the collection. */
  collation?: CollationOptions | undefined;
}

/** Options of {@link Database.listCollections}. */
export interface ListCollectionsOptions extends BSONReadOptions, CommandOptions {
  /** Returns only names and types. Default false. */
  nameOnly?: boolean | undefined;
  /** Accepted, without an effect. */
  authorizedCollections?: boolean | undefined;
  /** How many collections a batch has. Default: all in one. */
  batchSize?: number | undefined;
}

/** Options of {@link Database.command}. */
export interface RunCommandOptions extends BSONReadOptions, CommandOptions {}

/** A type of the host, if your project includes the host's types. */
type Host<Name extends string> = typeof globalThis extends { [K in Name]: { prototype: infer T } } ? T : never;
type HostModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer T } } } ? T : object;

/** The address of a file. */
export type Address = string | Host<"URL">;

/** A `Worker`, of the web or of `node:worker_threads`. */
export interface WorkerLike {
  postMessage(message: any, transfer: any[]): void;
  terminate(): unknown;
}

/** The source of a WebAssembly module: its address, a `Response`, its bytes, or the compiled module. */
export type WasmSource = string | Host<"URL"> | Host<"Response"> | ArrayBuffer | ArrayBufferView | HostModule;

/**
 * Parameters of the engine. They have the names and defaults of the server, where `setParameter` sets them.
 *
 * They apply to this opening of the database and are not stored. `db.command({ getParameter: "*" })` shows them.
 */
export interface EngineParameters {
  /** Maximum number of measurements in a bucket, from 1 to 1 000 000. Default 1000. */
  timeseriesBucketMaxCount?: number | undefined;
  /** Maximum size of a bucket in bytes, from 1 to 12 582 912. Default 128 000. */
  timeseriesBucketMaxSize?: number | undefined;
  /** A bucket with fewer measurements than this may exceed `timeseriesBucketMaxSize`, so that large measurements share buckets. With 1, no bucket may exceed it. Default 10. */
  timeseriesBucketMinCount?: number | undefined;
  /** Each bucket may have this many bytes, however many buckets share `cacheBytes`. Default 5120. */
  timeseriesBucketMinSize?: number | undefined;
  /** A value with more bytes than this counts with its full size until it is stored; a smaller value counts with its compressed size only. Default 32. */
  timeseriesLargeMeasurementThreshold?: number | undefined;
  /** If the bucket catalog takes more memory than this, in bytes, idle open buckets are archived. 0 or less means the default, 16 MiB. */
  timeseriesIdleBucketExpiryMemoryUsageThreshold?: number | undefined;
  /** At most this many plus one are archived at a time; at least 2. Default 3. */
  timeseriesIdleBucketExpiryMaxCountPerAttempt?: number | undefined;
  /** How often the search for a stored bucket is repeated while others change it. Default 16. */
  timeseriesMaxRetriesForWriteConflictsOnReopening?: number | undefined;
  /** How many more ids are drawn for a new bucket if its id is taken. Default 10. */
  timeseriesInsertMaxRetriesOnDuplicates?: number | undefined;
  /** Bytes shared by all open and archived buckets: the more buckets there are, the earlier each one is closed. Corresponds to the server's storage cache. Default 256 MiB. */
  cacheBytes?: number | undefined;
  /**
   * Bytes of stored buckets, and of columns decoded from them, that stay in memory for the next queries. Raise it if queries over a large collection are repeated.
   * Default 96 MiB; 40 MiB in Cloudflare Workers, and 256 MiB in Node, Deno and Bun. Memory is taken as it is needed.
   */
  readCacheBytes?: number | undefined;
}

/** Options of `open`. */
export interface OpenOptions {
  /**
   * `"indexeddb"`, `"memory"` (lives as long as the database is open), or an object that stores the entries, such as that of `timepail/sqlite`.
   * Default: `"indexeddb"` where it exists, else `"memory"`.
   */
  storage?: "indexeddb" | "memory" | HostStorage | undefined;
  /**
   * When a write resolves. Applies to IndexedDB; other storages take this option when you create them.
   *
   * - `"relaxed"` (default): when the browser has accepted it. The write survives a crash of the page or the browser; a power failure may lose the last moments.
   * - `"strict"`: when it is on disk.
   */
  durability?: "relaxed" | "strict" | undefined;
  /** Version of the buckets that are written: 2 (compressed columns, default) or 1 (plain documents). All versions are read. */
  bucketVersion?: 1 | 2 | undefined;
  /**
   * Parameters that control how buckets are filled, kept in memory and closed.
   *
   * @throws ServerError 2 `BadValue` for a number out of range, 14 `TypeMismatch` for a value that is no number, 72 `InvalidOptions` for an unknown name
   */
  parameters?: EngineParameters | undefined;
  /**
   * Refuses filters that compare the time with a number or a string. Nothing matches such a filter, because a time is a `Date`. Default false, as on a server. With
   * `true`, the second module is loaded with the first command.
   *
   * @throws ServerError 2 `BadValue` by every command with such a filter
   */
  strict?: boolean | undefined;
  /** The default of {@link CollectionOptions.generateIds} for all collections. Default false, because measurements need no `_id`. */
  generateIds?: boolean | undefined;
  /**
   * When measurements expire (`expireAfterSeconds`, `maxBytes`). `"automatic"` (default): after the first command, then at most once a minute. `"manual"`: only when you
   * run `db.command({ expire: 1 })`, and in the interval of `retentionIntervalMS` if you set one.
   */
  retention?: "automatic" | "manual" | undefined;
  /**
   * Interval of retention in milliseconds: deletes expired buckets even while nothing else happens. Without it, retention runs after a
   * command, at most once a minute, and on `db.command({ expire: 1 })`.
   */
  retentionIntervalMS?: number | undefined;
  /**
   * Runs the engine in a dedicated worker, so that the page is not kept busy. Everything else stays the same. Default false.
   *
   * - `true` starts `worker.js`, which is in the folder of the package's JavaScript; an address starts it from there. All databases of a page share this worker, and
   *   it ends with the last one.
   * - A function makes a `Worker` whose script imports `timepail/worker`. It is called for each `open`, and again after a worker has ended.
   * - A `Worker` with such a script is yours: you end it, and no other is started in its place.
   *
   * @throws WorkerError if the worker cannot be started, and by every call that waits while it ends
   * @throws TypeError if `storage` is an object, because objects do not reach workers: open the database in a worker of your own
   */
  worker?: boolean | Address | WorkerLike | (() => WorkerLike) | undefined;
  /** Source of the WebAssembly module. Default: `timepail.wasm` in the folder of the package's JavaScript. The first `open` of a page decides for all. */
  wasm?: WasmSource | Promise<WasmSource> | undefined;
  /** Source of the second module, `timepail-more.wasm`. The first less common command, such as `aggregate`, loads it. */
  wasmMore?: WasmSource | Promise<WasmSource> | undefined;
}

/** A change, as a listener of {@link Database.on} receives it. */
export interface ChangeEvent {
  /** What happened. `expire`: retention (`expireAfterSeconds`, `maxBytes`) deleted buckets. `replace`: `$out` wrote the collection. */
  operation: "create" | "insert" | "update" | "delete" | "replace" | "expire" | "drop" | "dropDatabase";
  /** Name of the collection. Missing if the whole database was dropped. */
  collection?: string;
  /** True if this `Database` made the change, false if another tab or worker did. */
  local: boolean;
  /** How many measurements were inserted, changed or deleted. */
  count?: number;
  /** Of `expire`: how many buckets were deleted. */
  buckets?: number;
  /** Of `expire`: the size of their documents in bytes. */
  bytes?: number;
  /** Of `expire`: the start of the oldest remaining bucket; `null` if none remains or the start is unknown. */
  oldest?: Date | null;
}

// ---------------------------------------------------------------------------------------------------------- results

/** Result of {@link Collection.insertOne}. */
export interface InsertOneResult {
  /** Always true. */
  acknowledged: boolean;
  /** The `_id` of the document; `undefined` if it has none. */
  insertedId: ObjectId | any;
}

/** Result of {@link Collection.insertMany}. */
export interface InsertManyResult {
  /** Always true. */
  acknowledged: boolean;
  /** How many measurements were stored. */
  insertedCount: number;
  /** The `_id` of each document by its index. A document without an `_id` has no entry. */
  insertedIds: { [index: number]: ObjectId | any };
}

/** An operation of {@link Collection.bulkWrite}. As everywhere, an update changes metadata, and all of the measurements that match. */
export type AnyBulkWriteOperation<TSchema = Document> =
  | { insertOne: { document: Measurement<TSchema> } }
  | { deleteOne: { filter: Filter<TSchema>; collation?: CollationOptions; hint?: Hint } }
  | { deleteMany: { filter: Filter<TSchema>; collation?: CollationOptions; hint?: Hint } }
  | { updateMany: { filter: Filter<TSchema>; update: UpdateFilter<TSchema>; arrayFilters?: Document[]; collation?: CollationOptions; hint?: Hint } };

/** Options of {@link Collection.bulkWrite}. */
export interface BulkWriteOptions extends InsertManyOptions {
  /** Variables for the expressions of the filters, `$$name`. */
  let?: Document | undefined;
}

/** Result of {@link Collection.bulkWrite}. */
export interface BulkWriteResult extends InsertManyResult {
  /** How many measurements matched the filter of an update. */
  matchedCount: number;
  /** How many measurements were changed. */
  modifiedCount: number;
  /** How many measurements were deleted. */
  deletedCount: number;
  /** Always 0. */
  upsertedCount: number;
  /** Always empty. */
  upsertedIds: { [index: number]: any };
}

/** Result of {@link Collection.insertColumns}. */
export interface InsertColumnsResult {
  /** Always true. */
  acknowledged: boolean;
  /** How many measurements were stored. */
  insertedCount: number;
}

/** Result of {@link Collection.deleteMany} and {@link Collection.deleteOne}. */
export interface DeleteResult {
  /** Always true. */
  acknowledged: boolean;
  /** How many measurements were deleted. */
  deletedCount: number;
}

/** Result of {@link Collection.updateMany}. */
export interface UpdateResult {
  /** Always true. */
  acknowledged: boolean;
  /** How many measurements matched the filter. */
  matchedCount: number;
  /** How many measurements were changed. */
  modifiedCount: number;
  /** Always 0. */
  upsertedCount: number;
  /** Always null. */
  upsertedId: null;
}

/** Why one document or operation was refused. */
export interface WriteError {
  /** Position in the array that was given. */
  index: number;
  /** The server's error code. */
  code: number;
  /** What is wrong with the document. */
  errmsg: string;
  /** The server's name for `code`. */
  codeName?: string;
  keyPattern?: Document;
  keyValue?: Document;
}

/** A collection, as {@link Database.listCollections} returns it. */
export interface CollectionInfo extends Document {
  name: string;
  type?: string;
  options?: Document;
  info?: Document;
}

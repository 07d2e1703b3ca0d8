// A collection: inserts, queries and deletes as commands.

import { ObjectId } from "bson";
import { AggregationCursor } from "./aggregate.js";
import { CommandCursor } from "./cursor.js";
import { FindCursor, queryDocument, sortDocument, withNulls } from "./find.js";
import type { Door } from "./door.js";
import { COMMAND_OPTIONS, checkNames, only, pick, readOptions } from "./options.js";
import { refuseMissing } from "./missing.js";
import { setOwn } from "./own.js";
import { AbortedWriteError, BulkWriteError, ServerError, type TimepailError } from "./errors.js";
import { columnRows, columnsToBlock, documentsToBlock, singleDocument, withId } from "./pivot.js";
import type { DistinctValue, Filter, Measurement, PathOf, ProjectionValue, UpdateFilter, WithProjection } from "./schema.js";
import type { Aggregated, AggregatedColumns, ColumnInput, Columns, ColumnsInput } from "./shapes.js";
import type {
  AggregateOptions,
  AnyBulkWriteOperation,
  BSONReadOptions,
  BulkWriteOptions,
  BulkWriteResult,
  CollectionOptions,
  CountDocumentsOptions,
  CommandOptions,
  CreateIndexOptions,
  DeleteOptions,
  DeleteResult,
  DistinctOptions,
  Document,
  FindOneAndDeleteOptions,
  FindOptions,
  IndexDescription,
  IndexInfo,
  IndexKeys,
  InsertColumnsOptions,
  InsertColumnsResult,
  InsertManyOptions,
  InsertManyResult,
  InsertOneOptions,
  InsertOneResult,
  UpdateOptions,
  UpdateResult,
  WriteError,
} from "./types.js";

/** Maximum number of documents in one command. */
const STATEMENTS_MAX = 100_000;
/** Every option of `insertMany`. */
const INSERT_OPTIONS = ["ordered", "bypassDocumentValidation", ...COMMAND_OPTIONS] as const;
/** Options of `deleteMany` and `updateMany`: those of a statement, of which the last two are for `updateMany` only, and those of the command. */
const STATEMENT_OPTIONS = ["collation", "hint", "arrayFilters", "upsert"] as const;
const WRITE_OPTIONS = ["ordered", "let", ...COMMAND_OPTIONS] as const;

/**
 * A collection of measurements. `db.collection(name)` returns one without asking the engine.
 *
 * A JavaScript `number` is stored as a double. To store integers, use `Int32`, `Long` or `bigint`, or integer arrays with {@link insertColumns}.
 * `undefined` fields of measurements are left out. In a query, `undefined` means `null`, as in the official driver.
 *
 * Every method may reject with `ServerError`, with `TypeError` for an unknown option, and with `ClosedError` after `db.close()`.
 */
export class Collection<TSchema extends Document = Document> {
  /** Name of the collection, without the database. */
  readonly collectionName: string;
  readonly #door: Door;
  readonly #readOptions: BSONReadOptions;
  readonly #generatesIds: boolean;

  /** @internal */
  constructor(door: Door, name: string, options: CollectionOptions) {
    this.#door = door;
    this.collectionName = name;
    this.#readOptions = readOptions(options);
    this.#generatesIds = options.generateIds ?? door.generateIds;
  }

  /** Name of the database. */
  get dbName(): string {
    return this.#door.database;
  }

  /** Full name: `database.collection`. */
  get namespace(): string {
    return `${this.dbName}.${this.collectionName}`;
  }

  /**
   * Stores one measurement and resolves when it is durable. Calls made at the same time share one transaction.
   *
   * @throws BulkWriteError if the measurement is refused
   */
  async insertOne(document: Measurement<TSchema>, options: InsertOneOptions = {}): Promise<InsertOneResult> {
    const [insertedId] = this.#ids([document as Document]);
    const raw = Object.keys(options).length > 0 ? undefined : singleDocument(document as Document, this.#generatesIds ? insertedId : undefined);
    if (raw) {
      const error = await this.#door.insertOne(this.collectionName, raw);
      if (error) refuse(0, [{ ...error, index: 0 }], {});
      return { acknowledged: true, insertedId };
    }
    const { acknowledged, insertedIds } = await this.insertMany([document], options);
    return { acknowledged, insertedId: insertedIds[0] };
  }

  /**
   * Stores measurements and resolves when all of them are durable.
   *
   * The documents are read before this returns; you may change them, and the array, at once. More than 100 000 measurements are sent in several commands, one after the
   * other, and each reads its documents when it is sent. If one of them fails, the error says how many measurements were stored before it.
   * The last entry of its `writeErrors` has the index of the first measurement that was not tried or may not be stored.
   *
   * @throws BulkWriteError if measurements are refused. With `ordered: true` (default), those before the first refused one are stored; with `false`, all others are
   * @throws BadValueError if a value cannot be stored at all, such as an invalid `Date`. Nothing of its command is stored. After the first 100 000 measurements, it is a `BulkWriteError` instead
   * @example
   * ```ts
   * await weather.insertMany([{ at: new Date(), station: 7, temp: 21.5 }], { ordered: false });
   * ```
   */
  insertMany(documents: readonly Measurement<TSchema>[], options?: InsertManyOptions): Promise<InsertManyResult>;
  async insertMany(documents: readonly any[], options: InsertManyOptions = {}): Promise<InsertManyResult> {
    if (!Array.isArray(documents)) throw new TypeError("insertMany needs an array of documents");
    if (documents.length === 0) throw new TypeError("There are no documents to insert");
    checkNames(options, INSERT_OPTIONS);
    const ids = this.#ids(documents);
    const { insertedCount, writeErrors, tried } = await this.#insert(documents.length, options, (start, end) => {
      const part = documents.slice(start, end);
      const partIds = this.#generatesIds ? ids.slice(start, end) : undefined;
      const payload = documentsToBlock(part, partIds, start);
      if (payload) return { payload };
      const whole = partIds ? part.map((document, i) => withId(document, partIds[i])) : part;
      return { fields: { documents: whole } };
    });
    const refused = new Set(writeErrors.map((error) => error.index));
    const end = writeErrors.length > 0 && options.ordered !== false ? writeErrors[0]!.index : tried;
    const insertedIds: InsertManyResult["insertedIds"] = {};
    for (let i = 0; i < end; i++) if (ids[i] !== undefined && !refused.has(i)) insertedIds[i] = ids[i];
    refuse(insertedCount, writeErrors, insertedIds);
    return { acknowledged: true, insertedCount, insertedIds };
  }

  /**
   * Stores measurements given as columns. This is the fastest way to insert, and an extension to the official driver.
   *
   * All columns must have the same length. The time column may hold numbers: milliseconds since the epoch, or what `timeUnit` says.
   *
   * - `Float64Array`, `Float32Array`, `Uint32Array` and arrays of numbers are stored as doubles.
   * - Smaller integer arrays are stored as 32-bit integers, `BigInt64Array` as 64-bit integers.
   * - In a plain array, `undefined` means that the row does not have the field. `NaN` is a value.
   *
   * @throws TypeError if the columns differ in length, or if `meta` is an array with one element a row, which belongs among the columns
   * @throws ServerError 2 `BadValue` for numbers in the time column that as milliseconds are before 1971, unless `timeUnit` says what they are. Nothing is stored
   * @throws BulkWriteError as in {@link insertMany}, without ids
   * @example
   * ```ts
   * await weather.insertColumns({ at: timesMs, temp: new Float64Array(n), rpm: new Int32Array(n) }, { meta: { id: 7 } });
   * ```
   */
  async insertColumns(columns: ColumnsInput<TSchema>, options: InsertColumnsOptions = {}): Promise<InsertColumnsResult> {
    const input = columns as Readonly<Record<string, ColumnInput | undefined>>;
    const rows = columnRows(input);
    checkNames(options, [...INSERT_OPTIONS, "meta", "timeUnit"]);
    if (Array.isArray(options.meta) && options.meta.length === rows) throw new TypeError((await import("./later.js")).META_PER_ROW);
    const fields = { columns: true, meta: options.meta, timeUnit: options.timeUnit };
    const { insertedCount, writeErrors } = await this.#insert(rows, options, (start, end) => {
      return { payload: columnsToBlock(sliceColumns(input, start, end), start), fields };
    });
    refuse(insertedCount, writeErrors, {});
    return { acknowledged: true, insertedCount };
  }

  /** Finds the measurements that match. Returns a cursor; nothing is sent before you read it. */
  find<T extends Document = never>(...given: [T] extends [never] ? [never, never, never] : [filter: Filter<TSchema>, options?: FindOptions<TSchema>]): FindCursor<T, TSchema>;
  find<const P extends Readonly<Record<string, ProjectionValue | undefined>>>(filter?: Filter<TSchema>, options?: WithProjection<FindOptions<TSchema>, TSchema, P>): FindCursor<TSchema>;
  find(filter: Document = {}, options: FindOptions<any> = {}): FindCursor<any, any> {
    return new FindCursor(this.#door, this.collectionName, filter, { ...this.#readOptions, ...options });
  }

  /**
   * Runs a pipeline of stages. Returns a cursor of its documents; nothing is sent before you read it.
   *
   * The type of the documents follows from `$project`, `$group`, `$count` and the stages that pass documents on. After other stages, state it as `T`; it is then not checked.
   */
  aggregate<T = never>(...given: [T] extends [never] ? [never, never, never] : [pipeline?: readonly Document[], options?: AggregateOptions]): AggregationCursor<T, Columns<T>>;
  aggregate(): AggregationCursor<TSchema>;
  aggregate<const P extends readonly Document[]>(pipeline: P, options?: AggregateOptions): AggregationCursor<Aggregated<TSchema, P>, AggregatedColumns<TSchema, P>>;
  aggregate(pipeline: readonly Document[] = [], options: AggregateOptions = {}): any {
    return new AggregationCursor(this.#door, this.collectionName, pipeline, { ...this.#readOptions, ...options });
  }

  /** Returns the first measurement that matches, or `null`. */
  findOne<T = never>(...given: [T] extends [never] ? [never, never, never] : [filter: Filter<TSchema>, options?: FindOptions<TSchema>]): Promise<T | null>;
  findOne<const P extends Readonly<Record<string, ProjectionValue | undefined>>>(filter?: Filter<TSchema>, options?: WithProjection<FindOptions<TSchema>, TSchema, P>): Promise<TSchema | null>;
  async findOne(filter: Document = {}, options: FindOptions<any> = {}): Promise<any> {
    const cursor = this.find(filter as Filter<TSchema>, { ...options, limit: 1, batchSize: 1, singleBatch: true } as FindOptions<TSchema>);
    const document = await cursor.next();
    await cursor.close();
    return document;
  }

  /** Counts the measurements that match. */
  async countDocuments(filter: Filter<TSchema> = {} as Filter<TSchema>, options: CountDocumentsOptions = {}): Promise<number> {
    return Number(await this.#ask("count", "n", filter, only(options, "limit", "skip", "hint", "collation", ...COMMAND_OPTIONS)));
  }

  /** Counts all measurements. The count is exact. */
  async estimatedDocumentCount(options: CommandOptions = {}): Promise<number> {
    return Number(await this.#ask("count", "n", {}, only(options, ...COMMAND_OPTIONS)));
  }

  /**
   * Returns the distinct values at the path `key` in the measurements that match. An array counts as its elements, and equal numbers are one value.
   *
   * @throws ServerError 17217 if the values are more than 16 MiB
   */
  distinct<K extends PathOf<TSchema>>(key: K, filter?: Filter<TSchema>, options?: DistinctOptions): Promise<DistinctValue<TSchema, K>[]>;
  distinct<T>(key: PathOf<TSchema>, filter?: Filter<TSchema>, options?: DistinctOptions): Promise<T[]>;
  async distinct(key: string, filter: Document = {}, options: DistinctOptions = {}): Promise<any[]> {
    return await this.#ask("distinct", "values", filter, { key, ...only(options, "hint", "collation", ...COMMAND_OPTIONS) }, this.#readOptions);
  }

  async #ask(command: string, field: string, filter: Document, more: Document, options?: BSONReadOptions): Promise<any> {
    return (await this.#door.run({ [command]: this.collectionName, query: queryDocument(filter), ...more }, undefined, options)).reply[field];
  }

  /** Deletes all measurements that match; without a filter, all measurements of the collection. A range of time deletes whole buckets without unpacking them. */
  deleteMany(filter: Filter<TSchema> = {} as Filter<TSchema>, options: DeleteOptions = {}): Promise<DeleteResult> {
    return this.#write("delete", filter, { limit: 0 }, options);
  }

  /** Deletes one measurement that matches. */
  deleteOne(filter: Filter<TSchema> = {} as Filter<TSchema>, options: DeleteOptions = {}): Promise<DeleteResult> {
    return this.#write("delete", filter, { limit: 1 }, options);
  }

  /** Deletes one measurement that matches and returns it. With a `sort`, it is the first one in that order. Returns `null` if none matches. */
  async findOneAndDelete<const P extends Readonly<Record<string, ProjectionValue | undefined>>>(filter: Filter<TSchema>, options: WithProjection<FindOneAndDeleteOptions<TSchema>, TSchema, P> = {}): Promise<TSchema | null> {
    const { projection: fields, sort, ...others } = only(options as FindOneAndDeleteOptions, "projection", "sort", "hint", "collation", "let", ...COMMAND_OPTIONS);
    return this.#ask("findAndModify", "value", filter, { remove: true, sort: sort && sortDocument(sort), fields, ...others }, this.#readOptions);
  }

  /**
   * Changes the metadata of all measurements that match. `filter` and `update` may name only the metadata.
   *
   * @throws ServerError 72 `InvalidOptions` for any other update
   */
  updateMany(filter: Filter<TSchema>, update: UpdateFilter<TSchema>, options: UpdateOptions = {}): Promise<UpdateResult> {
    return this.#write("update", filter, { u: withNulls(update), multi: true }, options);
  }

  /** Always rejects with `ServerError` 72 `InvalidOptions`, as on a server: a single measurement cannot be changed. Use {@link updateMany}. */
  updateOne(filter: Filter<TSchema>, update: UpdateFilter<TSchema>, options: UpdateOptions = {}): Promise<UpdateResult> {
    return this.#write("update", filter, { u: withNulls(update), multi: false }, options);
  }

  /**
   * Runs inserts, deletes and updates of metadata. With `ordered: true` (default), they run in their order and stop at the first that is refused. With `false`, all are
   * tried: updates first, then inserts, then deletes.
   *
   * Operations of one kind that follow each other are sent in one command. `maxTimeMS` limits each command.
   *
   * @throws BulkWriteError if operations are refused; `writeErrors` has their positions, and `result` what was carried out
   * @throws AbortedWriteError if the `signal` aborts after the first command was sent; its `result` has what earlier commands have carried out
   * @example
   * ```ts
   * await weather.bulkWrite([{ insertOne: { document: { at: new Date(), station: 7, temp: 21.5 } } }, { deleteMany: { filter: { station: 8 } } }]);
   * ```
   */
  async bulkWrite(operations: readonly AnyBulkWriteOperation<TSchema>[], options: BulkWriteOptions = {}): Promise<BulkWriteResult> {
    // Copy the array, because the caller may change it as soon as this call has returned.
    const given = Array.isArray(operations) ? [...operations] : operations;
    const { bulkWrite } = await import("./later.js");
    return bulkWrite([this, this.#door, AbortedWriteError, BulkWriteError, pick, checkNames, queryDocument, withNulls], given as readonly AnyBulkWriteOperation[], options);
  }

  /**
   * Creates an index on the time, the metadata, a path below it, or fields of measurements. Resolves to its name.
   *
   * @throws ServerError 67 `CannotCreateIndex` or 72 `InvalidOptions` for keys and options that are not allowed, 85 `IndexOptionsConflict` or 86 `IndexKeySpecsConflict` for a conflict with an existing index, 5930501 for an array at an indexed path of a stored measurement
   * @example
   * ```ts
   * await weather.createIndex({ "station.region": 1, at: -1 });
   * ```
   */
  async createIndex(keys: IndexKeys, options: CreateIndexOptions & CommandOptions = {}): Promise<string> {
    const { comment, maxTimeMS, signal, ...more } = options;
    return (await this.createIndexes([{ key: keys, ...more }], { comment, maxTimeMS, signal }))[0]!;
  }

  /** Creates several indexes, all or none. Resolves to their names. */
  async createIndexes(specs: readonly IndexDescription[], options: CommandOptions = {}): Promise<string[]> {
    if (!Array.isArray(specs)) throw new TypeError("The indexes must be an array");
    const indexes = (specs as readonly IndexDescription[]).map(({ key: keys, name, ...options }): Document => {
      if (!keys) throw new TypeError("An index needs a key, such as { station: 1 }");
      const key = sortDocument(keys, (direction) => direction);
      return { key, name: name ?? [...key].flat().join("_"), ...options };
    });
    await this.#door.run({ createIndexes: this.collectionName, indexes, ...only(options, ...COMMAND_OPTIONS) });
    return indexes.map((index) => index["name"] as string);
  }

  /** Drops an index by its name or by its keys. */
  async dropIndex(index: string | Document, options: CommandOptions = {}): Promise<Document> {
    return (await this.#door.run({ dropIndexes: this.collectionName, index, ...only(options, ...COMMAND_OPTIONS) })).reply;
  }

  /** Drops all indexes. */
  async dropIndexes(options: CommandOptions = {}): Promise<boolean> {
    await this.dropIndex("*", options);
    return true;
  }

  /** Lists the indexes, including the default one. Returns a cursor. */
  listIndexes(): CommandCursor<IndexInfo> {
    return new CommandCursor(this.#door, this.collectionName, { listIndexes: this.collectionName }, {});
  }

  /** Returns the indexes as an array. */
  indexes(): Promise<IndexInfo[]> {
    return this.listIndexes().toArray();
  }

  /** Deletes the collection and its measurements. */
  async drop(options: CommandOptions = {}): Promise<boolean> {
    await this.#door.run({ drop: this.collectionName, ...only(options, ...COMMAND_OPTIONS) });
    return true;
  }

  /** One statement of `delete` or `update`. */
  async #write(command: string, filter: Document, statement: Document, options: UpdateOptions): Promise<any> {
    checkNames(options, [...STATEMENT_OPTIONS.slice(0, statement["u"] ? 4 : 2), ...WRITE_OPTIONS]);
    const { reply } = await this.#door.run({
      [command]: this.collectionName,
      [command + "s"]: [{ q: queryDocument(filter), ...statement, ...pick(options, ...STATEMENT_OPTIONS) }],
      ...pick(options, ...WRITE_OPTIONS),
    });
    const writeErrors = reply["writeErrors"] as WriteError[] | undefined;
    if (writeErrors?.length) throw new ServerError({ ...reply, ...writeErrors[0] });
    const n = Number(reply["n"]);
    const modifiedCount = Number(reply["nModified"]);
    return { acknowledged: true, ...(statement["u"] ? { matchedCount: n, modifiedCount, upsertedCount: 0, upsertedId: null } : { deletedCount: n }) };
  }

  /** Sends rows `0..rows` in as few commands as allowed; `part` creates the content of one command. */
  async #insert(
    rows: number,
    options: InsertManyOptions,
    part: (start: number, end: number) => { payload?: Uint8Array; fields?: Document },
  ): Promise<{ insertedCount: number; writeErrors: WriteError[]; tried: number }> {
    let insertedCount = 0;
    const writeErrors: WriteError[] = [];
    let tried = 0;
    while (tried < rows) {
      const start = tried;
      let reply: Document;
      try {
        const { payload, fields } = part(start, Math.min(rows, start + STATEMENTS_MAX));
        const command = { insert: this.collectionName, ...pick(options, ...INSERT_OPTIONS), ...fields };
        ({ reply } = await this.#door.run(command, payload));
      } catch (error) {
        if (start === 0) throw error;
        if (options.signal?.aborted) throw new AbortedWriteError(options.signal.reason, insertedCount);
        // Earlier commands have stored their rows. The error must say so, so that you can retry the rest.
        const told = error as TimepailError;
        writeErrors.push({ index: start, code: told.code ?? 1, errmsg: told.message, ...pick(told as { codeName: string }, "codeName") });
        break;
      }
      tried = Math.min(rows, start + STATEMENTS_MAX);
      insertedCount += Number(reply["n"]);
      for (const error of (reply["writeErrors"] as WriteError[] | undefined) ?? []) writeErrors.push({ ...error, index: error.index + start });
      if (writeErrors.length > 0 && options.ordered !== false) break;
    }
    return { insertedCount, writeErrors, tried };
  }

  /** The `_id` of each document: the existing one, a new one, or `undefined`. */
  #ids(documents: readonly (Document | null | undefined)[]): unknown[] {
    return documents.map((document) => {
      const id: unknown = document?.["_id"];
      return id === undefined && this.#generatesIds ? new ObjectId() : id;
    });
  }
}

refuseMissing(Collection.prototype, {
  findOneAndUpdate: "a measurement does not change; updateMany() changes metadata",
  findOneAndReplace: "a measurement does not change; delete it and insert another",
  replaceOne: "a measurement does not change; delete it and insert another",
  rename: "copy the measurements by aggregate([{ $out: ... }]), then drop() this collection",
  watch: 'db.on("change", listener) tells of changes',
});

function sliceColumns(columns: Readonly<Record<string, ColumnInput | undefined>>, start: number, end: number): Record<string, ColumnInput> {
  const part: Record<string, ColumnInput> = {};
  for (const [name, values] of Object.entries(columns)) {
    if (values !== undefined) setOwn(part, name, Array.isArray(values) ? values.slice(start, end) : (values as Float64Array).subarray(start, end));
  }
  return part;
}

/** Throws if there are errors. */
function refuse(insertedCount: number, writeErrors: WriteError[], insertedIds: InsertManyResult["insertedIds"]): void {
  if (writeErrors.length > 0) throw new BulkWriteError(writeErrors, { acknowledged: true, insertedCount, insertedIds });
}

/// <reference lib="esnext.disposable" preserve="true" />
// Cursors: batches of an engine cursor as documents, one at a time or all at once.

import { decodeBlock, type Block } from "./block.js";
import { documentsToColumns } from "./pivot.js";
import type { Answer, Door } from "./door.js";
import { CursorExhaustedError, CursorInUseError } from "./errors.js";
import { checkInteger, only, readOptions } from "./options.js";
import { blockToDocuments, columnReader, dateReader } from "./rows.js";
import type { Columns, Series } from "./shapes.js";
import type { BSONReadOptions, CommandOptions, Document, ExplainVerbosity } from "./types.js";

/** Rows per batch when everything is read: few round trips, without a large result in memory twice. */
const BIG_BATCH = 65_536;

/** `Symbol.asyncDispose` if it exists, else a symbol that no runtime calls. */
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * The methods of all cursors. A cursor sends nothing before you ask for its first document.
 *
 * Close a cursor that you do not read to the end: leave its `for await` loop, use `await using`, or call {@link close}.
 *
 * @example
 * ```ts
 * for await (const reading of weather.find({ station: 7 }).sort({ at: 1 })) draw(reading);
 * ```
 */
export abstract class AbstractCursor<TSchema = Document, TColumns = Partial<Columns<TSchema>>> {
  /** @internal */
  protected readonly door: Door;
  /** @internal */
  protected readonly collection: string;
  /**
   * A copy of what was given, which methods of the cursor change.
   * @internal
   */
  protected readonly options: BSONReadOptions & CommandOptions & { batchSize?: number | undefined };
  /** Collection that getMore and killCursors name. */
  #opened: string;
  #id = 0n;
  #state: "new" | "open" | "done" = "new";
  #isClosed = false;
  #batch: Document[] = [];
  /** The undecoded batch, until one of its documents is requested. */
  #block: Block | undefined;
  /** The block of the last answer, even if it has no rows. */
  #last: Block | undefined;
  #position = 0;
  #fetching: Promise<void> | undefined;
  #transform: ((document: Document) => unknown) | undefined;
  /** Replaces the opening command: another command, or an answer whose first batch is a block. `#reply` is the first reply. */
  #given: Document | undefined;
  #reply: Document | undefined;
  readonly #readOptions: BSONReadOptions;

  /** @internal */
  constructor(door: Door, collection: string, options: AbstractCursor["options"]) {
    this.door = door;
    this.collection = this.#opened = collection;
    this.options = { ...options };
    this.#readOptions = readOptions(options);
  }

  /**
   * The command that opens the cursor. `wantsAll`: the result will be read to the end.
   * @internal
   */
  protected abstract openingCommand(wantsAll: boolean): Document;
  /**
   * The batch size to ask for, if any: the caller's, or a large one if the result will be read to the end.
   * @internal
   */
  protected sizeFor(wantsAll: boolean): number | undefined {
    return this.options.batchSize ?? (wantsAll ? BIG_BATCH : undefined);
  }
  /**
   * Stages that may name fields of the result. These fields get a column even if there are no rows.
   * @internal
   */
  protected get stages(): readonly Document[] {
    return [];
  }

  /** True if the cursor is closed in the engine and returns no more documents. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /**
   * Returns the next document, or `null` at the end.
   *
   * @throws CursorExhaustedError if the cursor was at its end before, or was closed
   */
  async next(): Promise<TSchema | null> {
    if (this.#isClosed) throw new CursorExhaustedError();
    // A concurrent call may have taken the last document in the meantime.
    while (await this.#advance(false)) if (this.#position < this.#batch.length) return this.#take();
    return null;
  }

  /** The same as {@link next}, because no cursor waits for new documents. */
  tryNext(): Promise<TSchema | null> {
    return this.next();
  }

  /** Resolves to true if {@link next} would return a document. */
  hasNext(): Promise<boolean> {
    return this.#advance(false);
  }

  /** Returns all remaining documents, and closes the cursor. It asks for large batches unless you set a batch size. */
  async toArray(): Promise<TSchema[]> {
    const documents: TSchema[] = [];
    try {
      while (await this.#advance(true)) {
        const transform = this.#transform;
        for (; this.#position < this.#batch.length; this.#position++) {
          const document = this.#batch[this.#position]!;
          documents.push((transform ? transform(document) : document) as TSchema);
        }
      }
    } finally {
      await this.close();
    }
    return documents;
  }

  /**
   * Returns all remaining rows as columns, without an object per row. An extension to the driver. {@link map} has no effect on the result.
   *
   * | values | column | if a row does not have the field |
   * |---|---|---|
   * | doubles, or doubles and 32-bit integers | `Float64Array` | `NaN` |
   * | 32-bit integers | `Int32Array` | the column is a `Float64Array` with `NaN` |
   * | 64-bit integers | `BigInt64Array` | the column is an array with `undefined` |
   * | 64-bit integers with doubles or 32-bit integers | array of `bigint` and `number` | `undefined` |
   * | dates | `Float64Array` of milliseconds since the epoch | `NaN` |
   * | anything else, and numbers with a `null` among them | array | `undefined` |
   *
   * A field that no row has gets no column. A result of `find` without rows has the time column and the columns that its projection names, one of a pipeline the
   * columns that a `$group` names: each is an empty `Float64Array`. The typed arrays may be views of one larger buffer.
   *
   * @example
   * ```ts
   * const { at, temp } = await weather.find({ "station.id": 7 }).sort({ at: 1 }).toColumns();
   * ```
   *
   * With `by`, returns the columns of each series by itself, in the order in which the series come first: for a chart with a line for each.
   *
   * @example
   * ```ts
   * const series = await weather.find().sort({ at: 1 }).project({ at: 1, temp: 1, station: 1 }).toColumns({ by: "station" });
   * plot.setData(uPlot.join(series.map(({ columns: { at, temp } }) => [at, temp])));
   * ```
   */
  toColumns(options?: { by?: never }): Promise<TColumns>;
  toColumns(options: { by: string }): Promise<Series<TColumns>[]>;
  async toColumns(options: { by?: string } = {}): Promise<any> {
    const { by } = only(options, "by");
    // Both at once: the query does not wait for the code.
    const [{ columnsOrSeries }, blocks] = await Promise.all([import("./later.js"), this.#rest()]);
    return columnsOrSeries(blocks, by, this.stages, this.#readOptions, [columnReader, dateReader]);
  }

  async #rest(): Promise<Block[]> {
    const blocks: Block[] = [];
    for await (const block of this.blocks()) blocks.push(block);
    return blocks;
  }

  /**
   * The remaining rows as they came from the engine, and a block without rows if there are none; closes the cursor.
   * @internal
   */
  async *blocks(): AsyncGenerator<Block, void, void> {
    let rows = 0;
    try {
      while (await this.#advance(true, true)) {
        const rest = this.#batch.slice(this.#position);
        const block = this.#block ?? { rows: rest.length, columns: documentsToColumns(rest) };
        this.#block = undefined;
        this.#batch = [];
        rows += block.rows;
        yield block;
      }
      if (rows === 0 && this.#last?.rows === 0) yield this.#last;
    } finally {
      await this.close();
    }
  }

  /** Calls `iterator` for each document in order, until it returns `false`. */
  async forEach(iterator: (document: TSchema) => boolean | void): Promise<void> {
    checkFunction(iterator);
    for await (const document of this) if (iterator(document) === false) break;
  }

  /** Passes every document through `transform`. A second `transform` receives the result of the first. */
  map<T>(transform: (document: TSchema) => T): AbstractCursor<T, TColumns> {
    this.assertNew("map");
    checkFunction(transform);
    const first = this.#transform;
    this.#transform = first ? (document) => transform(first(document) as TSchema) : (transform as (document: Document) => unknown);
    return this as unknown as AbstractCursor<T, TColumns>;
  }

  /** Iterates over the documents in order. Leaving the loop closes the cursor. */
  async *[Symbol.asyncIterator](): AsyncGenerator<TSchema, void, void> {
    try {
      while (await this.#advance(false)) {
        while (this.#position < this.#batch.length) yield this.#take();
      }
    } finally {
      await this.close();
    }
  }

  /** Closes the cursor here and in the engine. You can call it at any time, and more than once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#state = "done";
    this.#batch = [];
    this.#block = undefined;
    this.#position = 0;
    // A pending answer may still bring a cursor id.
    await this.#fetching?.catch(() => {});
    const id = this.#id;
    this.#id = 0n;
    if (id !== 0n && !this.door.isClosed) {
      // Ignore a failure, because the cursor times out by itself.
      await this.door.run({ killCursors: this.#opened, cursors: [id] }).catch(() => {});
    }
  }

  /** Resets the cursor: the next document is the first one of a new run. */
  async rewind(): Promise<void> {
    await this.close();
    this.#state = "new";
    this.#isClosed = false;
  }

  /** Closes the cursor at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Sets an option. `method` is named by the error if the cursor was used already.
   * @internal
   */
  protected set(option: string, value: unknown, method = option): this {
    this.assertNew(method);
    checkInteger(option, value);
    (this.options as Document)[option] = value;
    return this;
  }

  /** Throws `CursorInUseError` if the cursor was used already. */
  protected assertNew(method: string): void {
    if (this.#state !== "new" || this.#fetching) throw new CursorInUseError(method);
  }

  /**
   * Returns the reply of the command `explain`: the plan of the query and figures of its execution.
   *
   * The query runs separately from this cursor. With `"queryPlanner"` or `false` it is only planned. Default: `true`, which means `"allPlansExecution"`.
   *
   * @example
   * ```ts
   * const { stages } = await weather.find({ "station.id": 7 }).explain("executionStats");
   * ```
   */
  async explain(verbosity: ExplainVerbosity | boolean = true): Promise<Document> {
    const name = verbosity === true ? "allPlansExecution" : verbosity || "queryPlanner";
    const { signal, maxTimeMS, ...explain } = this.openingCommand(false);
    return (await this.door.run({ explain, verbosity: name, signal, maxTimeMS }, undefined, this.#readOptions)).reply;
  }

  /**
   * Returns a function that reads the complete result of a command, or of an answer, through `copy` of this cursor.
   * @internal
   */
  protected reader(copy: AbstractCursor<any, any>, asColumns?: boolean): (command: Document) => Promise<{ result: any; reply: Document }> {
    copy.#transform = this.#transform;
    return async (command) => {
      await copy.rewind();
      copy.#given = command;
      const result = await (asColumns ? copy.toColumns() : copy.toArray());
      return { result, reply: copy.#reply! };
    };
  }

  #take(): TSchema {
    const document = this.#batch[this.#position++]!;
    return (this.#transform ? this.#transform(document) : document) as TSchema;
  }

  /** Ensures that a document is available; false at the end. Concurrent callers share one request. */
  async #advance(wantsAll: boolean, asBlock = false): Promise<boolean> {
    for (;;) {
      const { signal } = this.options;
      if (signal?.aborted) {
        void this.close();
        throw signal.reason;
      }
      if (this.#block && !asBlock) {
        this.#batch = blockToDocuments(this.#block, this.#readOptions);
        this.#block = undefined;
      }
      if (this.#block || this.#position < this.#batch.length) return true;
      if (this.#state === "done") {
        this.#isClosed = true;
        return false;
      }
      this.#fetching ??= this.#fetch(wantsAll).finally(() => (this.#fetching = undefined));
      await this.#fetching;
    }
  }

  async #fetch(wantsAll: boolean): Promise<void> {
    const isFirst = this.#state === "new";
    let answer: Answer;
    try {
      const command = isFirst
        ? (this.#given ?? this.openingCommand(wantsAll))
        : { getMore: this.#id, collection: this.#opened, batchSize: this.sizeFor(wantsAll) || undefined, signal: this.options.signal };
      if (isFirst) this.#state = "open";
      const { block } = command as { block?: { buffer: Uint8Array; position: number } };
      if (block) answer = { reply: command, block: decodeBlock(block.buffer.subarray(0, block.position)) };
      else answer = await this.door.run(command, undefined, this.#readOptions);
    } catch (error) {
      this.#state = "done";
      this.#isClosed = true;
      // After a failed getMore, the cursor no longer exists in the engine.
      this.#id = 0n;
      throw error;
    }
    if (isFirst) this.#reply = answer.reply;
    const cursor = answer.reply["cursor"] as Document;
    this.#id = BigInt(String(cursor["id"]));
    // The name of a database may contain dots.
    if (typeof cursor["ns"] === "string") this.#opened = cursor["ns"].slice(this.door.database.length + 1);
    if (this.#isClosed) return;
    this.#position = 0;
    this.#batch = (cursor[isFirst ? "firstBatch" : "nextBatch"] as Document[] | undefined) ?? [];
    this.#block = answer.block && answer.block.rows > 0 ? answer.block : undefined;
    this.#last = answer.block;
    if (this.#id === 0n) this.#state = "done";
  }
}

/** The cursor of a listing command, such as `listCollections`. */
export class CommandCursor<T = Document> extends AbstractCursor<T> {
  readonly #command: Document;

  /** @internal */
  constructor(door: Door, namespace: string, command: Document, options: AbstractCursor["options"]) {
    super(door, namespace, options);
    this.#command = command;
  }

  /** @internal */
  protected override openingCommand(): Document {
    return this.#command;
  }
}

function checkFunction(given: unknown): void {
  if (typeof given !== "function") throw new TypeError(`${String(given)} is not a function`);
}

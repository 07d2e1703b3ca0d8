// Opening a database, and the database itself.

import { CommandCursor, asyncDispose } from "./cursor.js";
import { Collection } from "./collection.js";
import { Door } from "./door.js";
import type { OpenEngine } from "./engine.js";
import { letExit } from "./events.js";
import { checkDocument, queryDocument, withNulls } from "./find.js";
import { aliveContexts, holdContext, newContext } from "./lock.js";
import { refuseMissing } from "./missing.js";
import { COMMAND_OPTIONS, READ_OPTIONS, checkNames, only, pick, readOptions } from "./options.js";
import { blockToDocuments } from "./rows.js";
import type {
  ChangeEvent,
  CollectionInfo,
  CollectionOptions,
  CommandOptions,
  CreateCollectionOptions,
  Document,
  ListCollectionsOptions,
  OpenOptions,
  RunCommandOptions,
} from "./types.js";

/** Every option of `open`. */
const OPTIONS = ["storage", "durability", "bucketVersion", "parameters", "strict", "retention", "generateIds", "retentionIntervalMS", "worker", "wasm", "wasmMore"] as const;

/** The options, none of which fits if it is missing in the list. */
type Listed = { [K in keyof OpenOptions]: K extends (typeof OPTIONS)[number] ? unknown : never };

/** Every option of `collection`. */
const COLLECTION_OPTIONS = [...READ_OPTIONS, "generateIds"] as const;

/** Delay after opening before journals of closed tabs are folded, so that the first commands of a page do not wait. */
const ORPHANS_DELAY_MS = 1000;

/** Opens the database `name` with an engine from `openEngine`. The entry points build their `open` on it. */
export async function openWith(openEngine: OpenEngine, name: string, options: OpenOptions = {}): Promise<Database> {
  if (typeof name !== "string" || name === "") throw new TypeError("The name of a database must be a non-empty string");
  checkDocument(options, "options");
  checkNames(options satisfies Listed, OPTIONS);
  const given = options.storage ?? (typeof indexedDB === "undefined" ? "memory" : "indexeddb");
  const [storage, host] = typeof given === "object" ? (["host", given] as const) : [given];
  for (const method of ["getMany", "scan", "commit"] as const) {
    if (host && typeof host[method] !== "function") throw new TypeError(`The storage has no method ${method}`);
  }
  if (!host && storage !== "indexeddb" && storage !== "memory") {
    throw new TypeError((await import("./later.js")).unknownStorage(storage));
  }
  const context = newContext();
  const isShared = storage === "indexeddb";
  // Runs in parallel with the opening: without the lock yet, others may fold this journal early, which does no harm. A worker holds its lock itself.
  const held = isShared && !options.worker ? holdContext(name, context) : undefined;
  try {
    const engine = await openEngine(name, {
      storage,
      durability: options.durability ?? "relaxed",
      context,
      ...pick(options, "bucketVersion", "parameters", "strict", "retention"),
    }, host);
    const release = await held;
    const door = new Door(engine, name, options.generateIds ?? false, isShared, storage === "memory");
    const orphans = storage !== "memory" ? setTimeout(() => void foldOrphans(door, isShared), ORPHANS_DELAY_MS) : undefined;
    const every = options.retentionIntervalMS;
    const timer = every ? setInterval(() => door.runAside({ expire: 1 }), every) : undefined;
    [orphans, timer].forEach(letExit);
    return new Database(door, () => {
      clearTimeout(orphans);
      clearInterval(timer);
      release?.();
    });
  } catch (error) {
    void held?.then((release) => release?.());
    throw error;
  }
}

/**
 * Folds the journals of closed tabs. This only saves work later, so it is not awaited and failures are ignored. With a storage object, it is unknown which
 * other contexts are open. Folding the journal of an open context is unnecessary work, but does no harm.
 */
async function foldOrphans(door: Door, isShared: boolean): Promise<void> {
  try {
    const alive = isShared ? await aliveContexts(door.database) : [];
    if (alive) await door.run({ foldJournals: 1, alive });
  } catch {
    // The next `open` tries again.
  }
}

/**
 * An open database.
 *
 * @example
 * ```ts
 * await using db = await open("plant");
 * const weather = db.collection("weather");
 * ```
 */
export class Database {
  readonly #door: Door;
  readonly #release: () => void;

  /** @internal */
  constructor(door: Door, release: () => void) {
    this.#door = door;
    this.#release = release;
  }

  /** Name of the database. */
  get databaseName(): string {
    return this.#door.database;
  }

  /** The same as {@link databaseName}. */
  get name(): string {
    return this.#door.database;
  }

  /**
   * Creates a time-series collection. Does nothing if it exists with the same options. With `ifExists: "modify"`, one that exists gets these options.
   *
   * @throws ServerError 48 `NamespaceExists` if it exists with other options; the message names them, and the command that changes them
   * @example
   * ```ts
   * await db.createCollection("weather", {
   *   timeseries: { timeField: "at", metaField: "station", granularity: "minutes" },
   *   expireAfterSeconds: 86400 * 30,
   * });
   * ```
   */
  async createCollection<TSchema extends Document = Document>(name: string, options: CreateCollectionOptions<NoInfer<TSchema>>): Promise<Collection<TSchema>> {
    const given = options ?? {};
    const collection = this.collection<TSchema>(name, pick(given, ...COLLECTION_OPTIONS));
    // All other options go to the engine, which refuses unknown ones.
    const others = Object.keys(given).filter((option) => !(COLLECTION_OPTIONS as readonly string[]).includes(option));
    await this.#door.run(Object.assign({ create: name }, pick(given as Document, ...others), { create: name }));
    return collection;
  }

  /** Returns a collection by name. Sends nothing, so you learn that a collection is missing only when you use it. */
  collection<TSchema extends Document = Document>(name: string, options: CollectionOptions = {}): Collection<TSchema> {
    if (typeof name !== "string" || name === "") throw new TypeError("The name of a collection must be a non-empty string");
    return new Collection<TSchema>(this.#door, name, only(options, ...COLLECTION_OPTIONS));
  }

  /**
   * Runs any server command that the engine has, and returns its reply.
   *
   * The first key is the name of the command, and `undefined` becomes `null`. The batch of a cursor command is in `cursor.firstBatch` or `cursor.nextBatch`, as on the server.
   *
   * @throws ServerError if the reply has `ok: 0`
   * @example
   * ```ts
   * const { cursor } = await db.command({ find: "weather", filter: { station: 7 }, limit: 5 });
   * ```
   */
  async command(command: Document, options: RunCommandOptions = {}): Promise<Document> {
    checkDocument(command, "command");
    checkNames(options, [...READ_OPTIONS, ...COMMAND_OPTIONS]);
    const whole = { ...(withNulls(command) as Document), ...pick(options, ...COMMAND_OPTIONS) };
    const { reply, block } = await this.#door.run(whole, undefined, options);
    const cursor = reply["cursor"] as Document | undefined;
    if (block && cursor) cursor["nextBatch" in cursor ? "nextBatch" : "firstBatch"] = blockToDocuments(block, readOptions(options));
    return reply;
  }

  /** Lists the collections whose description matches `filter`. Returns a cursor. */
  listCollections(filter: Document = {}, options: ListCollectionsOptions = {}): CommandCursor<CollectionInfo> {
    const command = { listCollections: 1, filter: queryDocument(filter), cursor: { batchSize: options.batchSize }, ...pick(options, "nameOnly", "authorizedCollections", ...COMMAND_OPTIONS) };
    checkNames(options, [...READ_OPTIONS, "nameOnly", "authorizedCollections", "batchSize", ...COMMAND_OPTIONS]);
    return new CommandCursor(this.#door, "$cmd.listCollections", command, options);
  }

  /** Deletes a collection and its measurements. */
  dropCollection(name: string, options?: CommandOptions): Promise<boolean> {
    return this.collection(name).drop(options);
  }

  /** Deletes everything in the database. The database stays open. */
  async dropDatabase(options: CommandOptions = {}): Promise<boolean> {
    await this.#door.run({ dropDatabase: 1, ...only(options, ...COMMAND_OPTIONS) });
    return true;
  }

  /**
   * Calls `listener` after each change of the database, in this tab or in another tab or worker. An extension to the driver. Use it to
   * redraw a chart when others insert, or to learn what retention has deleted.
   *
   * Changes of other tabs may arrive late, and several of their inserts as one. The result of a query never depends on these messages.
   *
   * @example
   * ```ts
   * db.on("change", ({ operation, collection, local }) => {
   *   if (!local && collection === "weather") redraw();
   * });
   * ```
   */
  on(event: "change", listener: (change: ChangeEvent) => void): this {
    checkEvent(event);
    if (typeof listener !== "function") throw new TypeError("The listener must be a function");
    this.#door.events.on(listener);
    return this;
  }

  /** Removes `listener`. */
  off(event: "change", listener: (change: ChangeEvent) => void): this {
    checkEvent(event);
    this.#door.events.off(listener);
    return this;
  }

  /** Turns journals into buckets now; the engine does it later by itself. An extension to the driver. You need it neither for durability nor for speed. */
  async flush(options: CommandOptions = {}): Promise<void> {
    await this.#door.run({ flush: 1, ...only(options, ...COMMAND_OPTIONS) });
  }

  /** Closes the database. Later calls reject with `ClosedError`, except a second `close()`. */
  async close(): Promise<void> {
    try {
      await this.#door.close();
    } finally {
      this.#release();
    }
  }

  /** Closes the database at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }
}

refuseMissing(Database.prototype, {
  watch: 'on("change", listener) tells of changes',
  renameCollection: "copy the measurements by aggregate([{ $out: ... }]) of the collection, then drop() it",
  aggregate: "pipelines are of a collection: db.collection(name).aggregate(pipeline)",
});

function checkEvent(event: string): void {
  if (event !== "change") throw new TypeError(`Unknown event "${event}"`);
}

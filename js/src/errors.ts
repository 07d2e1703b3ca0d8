// The errors of this package. The contract with callers is `code` and `codeName`, which are the server's.

import type { BulkWriteResult, Document, InsertManyResult, WriteError } from "./types.js";

/** Options of the built-in `Error`, and the code. */
interface ErrorInit {
  code?: number | undefined;
  codeName?: string | undefined;
  cause?: unknown;
}

/**
 * Base class of the errors of this package. An argument of the wrong JavaScript type is a plain `TypeError` instead.
 */
export class TimepailError extends Error {
  override name = "TimepailError";
  /** The server's error code; `undefined` if the server has none for this error. */
  readonly code: number | undefined;
  /** The server's name of `code`, such as `"BadValue"`. */
  readonly codeName: string | undefined;

  /** @internal */
  constructor(message: string, init: ErrorInit = {}) {
    super(message, init);
    this.code = init.code;
    this.codeName = init.codeName;
  }
}

/**
 * The engine answered a command with `ok: 0`, or refused one of its statements.
 *
 * @example
 * ```ts
 * try {
 *   await db.createCollection("weather", { timeseries: { timeField: "at" } });
 * } catch (error) {
 *   if (!(error instanceof ServerError && error.codeName === "NamespaceExists")) throw error;
 * }
 * ```
 */
export class ServerError extends TimepailError {
  override name = "ServerError";
  declare readonly code: number;
  declare readonly codeName: string;
  /** The complete reply. */
  readonly errorResponse: Document;

  /** @internal */
  constructor(reply: Document) {
    const code = typeof reply["code"] === "number" ? reply["code"] : 1;
    super(String(reply["errmsg"] ?? "The command failed"), {
      code,
      codeName: String(reply["codeName"] ?? (code === 1 ? "InternalError" : code === 2 ? "BadValue" : `Location${code}`)),
    });
    this.errorResponse = reply;
  }

  /** The text of the error; the same as `message`. */
  get errmsg(): string {
    return this.message;
  }
}

/**
 * Documents of an insert, or operations of a `bulkWrite`, were refused. `code` and `message` are those of the first refused one.
 *
 * With `ordered: true` (default), those after the first refused one were not tried. With `false`, all others were carried out.
 */
export class BulkWriteError extends ServerError {
  override name = "BulkWriteError";
  /** One entry per refused document or operation. `index` is its position in the array that was given. */
  readonly writeErrors: WriteError[];
  /** What was carried out, in the shape of a successful result. After `bulkWrite`, it has the counts of updates and deletes as well. */
  readonly result: InsertManyResult & Partial<BulkWriteResult>;

  /** @internal */
  constructor(writeErrors: WriteError[], result: InsertManyResult) {
    super({ ok: 1, n: result.insertedCount, writeErrors, ...writeErrors[0] });
    this.writeErrors = writeErrors;
    this.result = result;
  }

  /** How many measurements were stored. */
  get insertedCount(): number {
    return this.result.insertedCount;
  }
}

/**
 * The signal of a write aborted after the write was sent. The write is not undone: it may take place, in whole or in part. `cause` is the reason of the signal.
 */
export class AbortedWriteError extends TimepailError {
  override name = "AbortedWriteError";
  /** How many measurements are certain to be stored, by earlier commands of the same call. */
  readonly insertedCount: number;
  /** After `bulkWrite`: what is certain to be carried out, by earlier commands of the same call. */
  readonly result: BulkWriteResult | undefined;

  /** @internal */
  constructor(reason: unknown, insertedCount = 0, result?: BulkWriteResult) {
    const stored = insertedCount ? `; ${insertedCount} measurements are stored in any case` : "";
    super(`The write was aborted after it was sent, and is not undone: it may take place, in whole or in part${stored}`, { cause: reason });
    this.insertedCount = insertedCount;
    this.result = result;
  }
}

/** A value cannot be stored, such as an invalid `Date` or a key with a NUL, or bytes cannot be read. Code 2 `BadValue`. */
export class BadValueError extends TimepailError {
  override name = "BadValueError";

  /** @internal */
  constructor(message: string, cause?: unknown) {
    super(message, { code: 2, codeName: "BadValue", ...(cause !== undefined && { cause }) });
  }
}

/** The database was closed before or during the call. Code 11600 `InterruptedAtShutdown`. */
export class ClosedError extends TimepailError {
  override name = "ClosedError";

  /** @internal */
  constructor(database: string) {
    super(`The database "${database}" is closed; open it again to use it`, { code: 11600, codeName: "InterruptedAtShutdown" });
  }
}

/** A cursor was configured after its first use. */
export class CursorInUseError extends TimepailError {
  override name = "CursorInUseError";

  /** @internal */
  constructor(method: string) {
    super(`Cursor.${method}() must come before the first document is asked for; rewind() or make a new cursor`);
  }
}

/** A cursor was asked for a document after its end, or after it was closed. */
export class CursorExhaustedError extends TimepailError {
  override name = "CursorExhaustedError";

  /** @internal */
  constructor() {
    super("The cursor is at its end, or closed: rewind() it, or make a new one");
  }
}

/** The WebAssembly module could not be loaded. The message says what to change. */
export class LoadError extends TimepailError {
  override name = "LoadError";
}

/**
 * The worker of the option `worker` could not be started, or it has ended. The message says which, and what to do; `cause` says why.
 *
 * Acknowledged writes are stored. The outcome of pending calls is unknown. The next call starts another worker, unless the data was in memory only.
 */
export class WorkerError extends TimepailError {
  override name = "WorkerError";
}

// Everything public except `open`, which each entry point makes with its own way of loading.

export { AggregationCursor } from "./aggregate.js";
export { Collection } from "./collection.js";
export { AbstractCursor, CommandCursor as ListCollectionsCursor, CommandCursor as ListIndexesCursor } from "./cursor.js";
export { Database } from "./database.js";
export { AbortedWriteError, BadValueError, BulkWriteError, ClosedError, CursorExhaustedError, CursorInUseError, LoadError, ServerError, TimepailError, WorkerError } from "./errors.js";
export { FindCursor } from "./find.js";
export { LiveQuery, type LiveExplanation, type LiveObserver, type LiveOptions, type LiveSubscription } from "./live.js";
export type * from "./schema.js";
export type * from "./shapes.js";
export type * from "./storage.js";
export type * from "./types.js";

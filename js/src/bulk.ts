// bulkWrite: sends operations of several kinds in few commands, and collects their results.

import type { Collection } from "./collection.js";
import type { Door } from "./door.js";
import type { AbortedWriteError, BulkWriteError, TimepailError } from "./errors.js";
import type { queryDocument, withNulls } from "./find.js";
import type { checkNames, pick } from "./options.js";
import type { AnyBulkWriteOperation, BulkWriteOptions, BulkWriteResult, Document, WriteError } from "./types.js";

/** The command of each kind of operation, and the fixed fields of its statement. The engine refuses replacements. */
const KINDS: Readonly<Record<string, readonly [command: string, fixed: Document]>> = {
  insertOne: ["insert", {}],
  updateOne: ["update", { multi: false }],
  updateMany: ["update", { multi: true }],
  replaceOne: ["update", { multi: false }],
  deleteOne: ["delete", { limit: 1 }],
  deleteMany: ["delete", { limit: 0 }],
};

/** Functions that make statements. */
type Makers = readonly [typeof checkNames, typeof queryDocument, typeof withNulls];

/** What every page has already loaded: a collection, and what its own writes use. A tuple, because a minifier keeps names of properties. */
export type BulkTarget = readonly [Collection<any>, Door, typeof AbortedWriteError, typeof BulkWriteError, typeof pick, ...Makers];

/** An operation: its position in the input, its command and its statement. */
interface Step {
  index: number;
  command: string;
  statement: Document;
}

function stepOf([checkNames, queryDocument, withNulls]: Makers, operation: Document, index: number): Step {
  const [kind = "", given] = Object.entries(operation ?? {})[0] ?? [];
  const [command, fixed] = Object.hasOwn(KINDS, kind) ? KINDS[kind]! : [];
  if (!command || typeof given !== "object" || given === null) {
    throw new TypeError(`Operation ${index} must be an object such as { insertOne: { document } }: known are ${Object.keys(KINDS).join(", ")}`);
  }
  if (command === "insert") return { index, command, statement: (given as Document)["document"] ?? given };
  const { filter, update, replacement, ...options } = given as Document;
  checkNames(options, ["collation", "hint", "arrayFilters", "upsert"]);
  const change = update ?? replacement;
  return { index, command, statement: { q: queryDocument(filter), ...(command === "update" && { u: withNulls(change) }), ...fixed, ...options } };
}

/** Runs `operations` on a collection. Ordered operations keep their order. Unordered ones are grouped: updates, then inserts, then deletes. */
export async function bulkWrite(target: BulkTarget, operations: readonly AnyBulkWriteOperation[], options: BulkWriteOptions): Promise<BulkWriteResult> {
  const [collection, door, AbortedWriteError, BulkWriteError, pick, ...makers] = target;
  const [checkNames] = makers;
  if (!Array.isArray(operations) || operations.length === 0) throw new TypeError("bulkWrite takes an array of operations, which is not empty");
  checkNames(options, ["ordered", "bypassDocumentValidation", "let", "comment", "maxTimeMS", "signal"]);
  const ordered = options.ordered !== false;
  const steps = operations.map((operation, index) => stepOf(makers, operation, index));
  if (!ordered) steps.sort((a, b) => (a.command < b.command ? 1 : a.command > b.command ? -1 : 0));
  const result: BulkWriteResult = { acknowledged: true, insertedCount: 0, matchedCount: 0, modifiedCount: 0, deletedCount: 0, upsertedCount: 0, upsertedIds: {}, insertedIds: {} };
  const writeErrors: WriteError[] = [];
  for (let start = 0, end; start < steps.length; start = end) {
    const { command } = steps[start]!;
    for (end = start; end - start < 100_000 && steps[end]?.command === command; ) end++;
    const run = steps.slice(start, end);
    const refuse = (errors: readonly WriteError[]): void => errors.forEach((error) => void writeErrors.push({ ...error, index: run[error.index]!.index }));
    try {
      const statements = run.map(({ statement }) => statement);
      if (command === "insert") {
        const inserted = await collection.insertMany(statements, { ordered, ...pick(options, "bypassDocumentValidation", "comment", "maxTimeMS", "signal") }).catch((error: unknown) => {
          if (!(error instanceof BulkWriteError)) throw error;
          refuse(error.writeErrors);
          return error.result;
        });
        result.insertedCount += inserted.insertedCount;
        for (const [at, id] of Object.entries(inserted.insertedIds)) result.insertedIds[run[Number(at)]!.index] = id;
      } else {
        const { reply } = await door.run({ [command]: collection.collectionName, [command + "s"]: statements, ordered, ...pick(options, "let", "comment", "maxTimeMS", "signal") });
        if (command === "delete") result.deletedCount += Number(reply["n"]);
        else {
          result.matchedCount += Number(reply["n"]);
          result.modifiedCount += Number(reply["nModified"]);
        }
        refuse((reply["writeErrors"] as WriteError[] | undefined) ?? []);
      }
    } catch (error) {
      const isSent = start > 0 || error instanceof AbortedWriteError;
      if (isSent && options.signal?.aborted) {
        if (error instanceof AbortedWriteError) result.insertedCount += error.insertedCount;
        throw new AbortedWriteError(options.signal.reason, result.insertedCount, result);
      }
      // If the first command fails, nothing was written. If a later one fails, the error must say what was written, so that you can retry the rest.
      if (start === 0) throw error;
      const told = error as TimepailError;
      refuse([{ index: 0, code: told.code ?? 1, errmsg: told.message, ...pick(told as { codeName: string }, "codeName") }]);
      break;
    }
    if (ordered && writeErrors.length > 0) break;
  }
  if (writeErrors.length > 0) {
    writeErrors.sort((a, b) => a.index - b.index);
    throw new BulkWriteError(writeErrors, result);
  }
  return result;
}

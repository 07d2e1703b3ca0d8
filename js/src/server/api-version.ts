// What is in version 1 of the Stable API.

/** Its commands. */
export const apiV1: ReadonlySet<string> = new Set([
  "abortTransaction", "aggregate", "authenticate", "bulkWrite", "collMod", "commitTransaction", "count", "create", "createIndexes", "delete", "drop", "dropDatabase",
  "dropIndexes", "endSessions", "explain", "find", "findAndModify", "getMore", "hello", "insert", "killCursors", "listCollections", "listDatabases", "listIndexes", "ping",
  "refreshSessions", "saslContinue", "saslStart", "update",
]);

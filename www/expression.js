// Parses a call of the API, such as db.collection("weather").find({ … }).limit(5), and runs it. It only calls listed methods, and never
// evaluates the text as JavaScript.

import { Reader } from "./literal.js";

const ENDS = ["toArray", "toColumns", "explain", "next", "hasNext"];
const CURSOR = ["sort", "limit", "skip", "batchSize", ...ENDS];
/** For each kind of result: its methods, and the kind that each of them returns. A kind that is not listed has no methods. */
const METHODS = {
  db: { collection: "collection", command: "value", listCollections: "list", createCollection: "value", dropCollection: "value", flush: "value" },
  collection: {
    find: "find", aggregate: "aggregate", findOne: "value", countDocuments: "value", estimatedDocumentCount: "value", distinct: "value",
    insertOne: "value", insertMany: "value", deleteOne: "value", deleteMany: "value", updateMany: "value", findOneAndDelete: "value",
    createIndex: "value", createIndexes: "value", dropIndex: "value", dropIndexes: "value", listIndexes: "list", indexes: "value", drop: "value",
  },
  find: chain("find", [...CURSOR, "filter", "project", "hint", "collation", "comment"]),
  aggregate: chain("aggregate", [...CURSOR, "addStage", "match", "group", "project", "unwind", "downsample"]),
  list: { toArray: "value" },
  value: {},
};
const WRITES = /^(insert|delete|update|create|drop|findOneAndDelete|command)/;

function chain(kind, names) {
  return Object.fromEntries(names.map((name) => [name, ENDS.includes(name) ? "value" : kind]));
}

/**
 * The calls in `text`: `{ calls: [{ name, values }], kind, writes }`. A document alone is a command. A leading assignment and
 * `await` are skipped, so that you can paste code of this page.
 */
export function parseExpression(text) {
  const reader = new Reader(text);
  if (reader.peek() === "{") {
    const calls = [{ name: "command", values: [reader.value()] }];
    reader.end();
    return { calls, kind: "value", writes: true };
  }
  let start = reader.at;
  let word = reader.name();
  if (word === "const" || word === "let") {
    if (reader.takes("{")) while (reader.name() && reader.takes(","));
    else reader.name();
    reader.takes("}");
    reader.expect("=");
    start = reader.at;
    word = reader.name();
  }
  if (word === "await") word = reader.name();
  if (word !== "db") reader.fail("begin with db, as in db.collection(\"weather\").find(), or with a command, as in { ping: 1 }", start);
  const calls = [];
  let kind = "db";
  while (reader.takes(".")) {
    const at = reader.at;
    const name = reader.name() ?? "";
    const methods = METHODS[kind];
    if (!Object.hasOwn(methods, name)) reader.fail(`there is no “${name}” here; there is ${Object.keys(methods).join(", ") || "nothing more"}`, at);
    calls.push({ name, values: reader.list("(", ")") });
    kind = methods[name];
  }
  reader.end();
  if (kind === "db" || kind === "collection") reader.fail(`say what to do: ${Object.keys(METHODS[kind]).join(", ")}`);
  return { calls, kind, writes: calls.some(({ name }) => WRITES.test(name)) };
}

/** Runs the calls and returns the result of the last one: a cursor, or the promise of a value. */
export function carryOut(db, { calls }) {
  return calls.reduce((target, { name, values }) => target[name](...values), db);
}

/** The plan of the calls, with its execution statistics. */
export async function explain(db, { calls, kind }) {
  if (kind === "find" || kind === "aggregate") return carryOut(db, { calls }).explain("executionStats");
  const last = calls.at(-1);
  if (ENDS.includes(last.name)) return carryOut(db, { calls: calls.slice(0, -1) }).explain("executionStats");
  const command = last.name === "command" ? last.values[0] : commandOf(last, calls[0].values[0]);
  if (!command) throw new Error(`${last.name} has no plan to explain.`);
  return db.command({ explain: command, verbosity: "executionStats" });
}

function commandOf({ name, values: [first = {}, second = {}] }, collection) {
  switch (name) {
    case "findOne": return { find: collection, filter: first, ...second, limit: 1 };
    case "countDocuments": return { count: collection, query: first };
    case "distinct": return { distinct: collection, key: first, query: second };
    case "deleteOne":
    case "deleteMany": return { delete: collection, deletes: [{ q: first, limit: name === "deleteOne" ? 1 : 0 }] };
    case "updateMany": return { update: collection, updates: [{ q: first, u: second, multi: true }] };
    case "findOneAndDelete": return { findAndModify: collection, query: first, remove: true };
    default: return undefined;
  }
}

// Options by name: lists of names, copies of some, and checks. An unknown option is refused, with the most similar known name.

import type { BSONReadOptions } from "./types.js";

/** Options that control how BSON is read. */
export const READ_OPTIONS = ["promoteLongs", "promoteValues", "promoteBuffers", "bsonRegExp", "useBigInt64"] as const;

/** Options of every command. */
export const COMMAND_OPTIONS = ["comment", "maxTimeMS", "signal"] as const;

/** Options of the commands `find` and `aggregate`. */
export const QUERY_OPTIONS = ["hint", "collation", "let", "allowDiskUse", ...COMMAND_OPTIONS] as const;

/** Options that must be integers. */
const INTEGERS = /^(limit|skip|batchSize|maxTimeMS)$/;

/** Refuses names that are not in `known`, because a misspelt option would be ignored silently. Numbers of documents must be integers. */
export function checkNames(given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TypeError(`Unknown option ${JSON.stringify(name)}; ${suggestion(name, known)}`);
    // Do not read other options: they may be getters, such as `wasmMore`, which must run only when needed.
    if (INTEGERS.test(name)) checkInteger(name, (given as Record<string, unknown>)[name] ?? 0);
  }
}

/** Refuses a value that is not an integer, if the option needs one. */
export function checkInteger(name: string, value: unknown): void {
  if (INTEGERS.test(name) && !Number.isInteger(value)) throw new TypeError(`${name} must be an integer, not ${typeof value === "string" ? JSON.stringify(value) : String(value)}`);
}

/** Some properties of `T`, without those that are `undefined`. */
type Picked<T, K extends keyof T> = { [P in K]?: Exclude<T[P], undefined> };

/** The named properties of `from` that are not `undefined`, in the order named. */
export function pick<T extends object, K extends keyof T & string>(from: T, ...keys: K[]): Picked<T, K> {
  const picked: Partial<T> = {};
  for (const key of keys) if (from[key] !== undefined) picked[key] = from[key];
  return picked as Picked<T, K>;
}

/** Only the options that decide how BSON is read, and only those that were given. */
export function readOptions(options: BSONReadOptions = {}): BSONReadOptions {
  return pick(options, ...READ_OPTIONS);
}

/** The named properties of `given`. Refuses any others. */
export function only<T extends object, K extends keyof T & string>(given: T, ...known: K[]): Picked<T, K> {
  checkNames(given, known);
  return pick(given, ...known);
}

function suggestion(name: string, known: readonly string[]): string {
  let nearest = "";
  let most = 0.4;
  for (const each of known) {
    const likeness = likenessOf(pairsOf(name), pairsOf(each));
    if (likeness > most) [nearest, most] = [each, likeness];
  }
  return nearest ? `did you mean "${nearest}"?` : `known are ${known.join(", ")}`;
}

/** The pairs of letters that follow each other. */
function pairsOf(name: string): string[] {
  return Array.from(name.toLowerCase().slice(1), (letter, at) => name[at]!.toLowerCase() + letter);
}

/** From 0 to 1, how many pairs two names share. */
function likenessOf(one: string[], other: string[]): number {
  return (2 * other.filter((pair) => one.includes(pair)).length) / (one.length + other.length);
}

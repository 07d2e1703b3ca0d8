// Options by name: each one given is known, or refused with the known one that is nearest.

import { pick, type Picked } from "./door.js";

/** What decides how BSON is read. */
export const READ_OPTIONS = ["promoteLongs", "promoteValues", "promoteBuffers", "bsonRegExp", "useBigInt64"] as const;

/** What every command takes. */
export const COMMAND_OPTIONS = ["comment", "maxTimeMS", "signal"] as const;

/** Refuses what is not among `known`: a misspelt option would be ignored without notice. Numbers of documents must be integers. */
export function checkNames(given: object, known: readonly string[], what = "option"): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TypeError(`Unknown ${what} ${JSON.stringify(name)}; ${suggestion(name, known)}`);
    // Others may be getters, such as that of `wasmMore`, which are asked when they are needed.
    if (!/^(limit|skip|batchSize|maxTimeMS)$/.test(name)) continue;
    const value = (given as Record<string, unknown>)[name];
    if (value != null) integer(value, name);
  }
}

export function integer(value: unknown, name: string): number {
  if (!Number.isInteger(value)) throw new TypeError(`${name} must be an integer, not ${typeof value === "string" ? JSON.stringify(value) : String(value)}`);
  return value as number;
}

/** The named properties of `given`, which has no others. */
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

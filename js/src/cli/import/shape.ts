// Converts the rows of a file to measurements: fields get their names and types, and columns with dots become documents.

import type { Document } from "bson";
import type { BadRow, Batch } from "../formats/model.js";
import { Misfit } from "./values.js";

/** How the fields of a file are renamed and converted. */
export interface Shape {
  /** New names, by the names in the file. A name with dots leads into a document. */
  names: ReadonlyMap<string, string>;
  /** Converters of values, by the names in the file. */
  converters: ReadonlyMap<string, (value: unknown) => unknown>;
  /** Whether dots in the names of columns stay dots. Documents keep theirs in any case, unless they are renamed. */
  isFlat: boolean;
}

/** Rows that can be inserted, each with its line. */
export interface Shaped {
  columns?: Record<string, any>;
  documents?: Document[];
  lines: number[];
  bad: BadRow[];
}

export function shaped(batch: Batch, shape: Shape): Shaped {
  const rows = "documents" in batch ? batch.documents.length : batch.rows;
  const given = batch.lines;
  const lines = typeof given === "number" ? Array.from({ length: rows }, (_, row) => given + row) : [...given];
  const bad = [...(batch.bad ?? [])];
  const rowsOf = "documents" in batch ? { documents: documentsOf(batch.documents, shape, lines, bad) } : { columns: columnsOf(batch.columns, shape, lines, bad) };
  return { ...rowsOf, lines: lines.filter((line) => line >= 0), bad: bad.sort((a, b) => a.line - b.line) };
}

/** Takes a row out: its line is no longer that of a row. */
function refuse(row: number, name: string, error: unknown, lines: number[], bad: BadRow[]): void {
  if (!(error instanceof Misfit)) throw error;
  if (lines[row]! < 0) return;
  bad.push({ line: lines[row]!, message: `${name}: ${error.message}` });
  lines[row] = -1;
}

function documentsOf(documents: readonly Document[], { names, converters }: Shape, lines: number[], bad: BadRow[]): Document[] {
  if (converters.size === 0 && names.size === 0) return [...documents];
  const made = documents.map((document, row) => {
    const result: Document = {};
    for (const [name, value] of Object.entries(document)) {
      try {
        const convert = converters.get(name);
        const converted = convert ? convert(value) : value;
        const path = names.get(name);
        if (converted !== undefined) put(result, path === undefined ? [name] : path.split("."), converted);
      } catch (error) {
        refuse(row, name, error, lines, bad);
      }
    }
    return result;
  });
  return made.filter((_, row) => lines[row]! >= 0);
}

function columnsOf(given: Readonly<Record<string, any>>, { names, converters, isFlat }: Shape, lines: number[], bad: BadRow[]): Record<string, any> {
  const columns = new Map<string, any>();
  for (const [name, values] of Object.entries(given)) {
    const convert = converters.get(name);
    if (!convert) {
      columns.set(name, values);
      continue;
    }
    const converted = new Array(lines.length);
    for (let row = 0; row < lines.length; row++) {
      try {
        converted[row] = convert(values[row]);
      } catch (error) {
        refuse(row, name, error, lines, bad);
      }
    }
    columns.set(name, converted);
  }
  const isWhole = lines.every((line) => line >= 0);
  const result: Record<string, any> = Object.create(null);
  for (const [name, values] of columns) {
    const path = names.get(name) ?? name;
    const kept = isWhole ? values : values.filter((_: unknown, row: number) => lines[row]! >= 0);
    const [head, ...tail] = isFlat && !names.has(name) ? [path] : path.split(".");
    if (tail.length === 0) result[head!] = kept;
    else nest((result[head!] ??= new Array(kept.length).fill(undefined)), tail, kept);
  }
  return result;
}

/** Puts the values of a column into the documents of another one. */
function nest(into: (Document | undefined)[], path: string[], values: ArrayLike<unknown>): void {
  for (let row = 0; row < values.length; row++) {
    const value = values[row];
    if (value !== undefined) put((into[row] ??= {}), path, value);
  }
}

function put(document: Document, path: readonly string[], value: unknown): void {
  let place = document;
  for (const name of path.slice(0, -1)) place = Object.hasOwn(place, name) ? place[name] : (place[name] = {});
  const last = path[path.length - 1]!;
  if (last === "__proto__") Object.defineProperty(place, last, { value, enumerable: true, configurable: true, writable: true });
  else place[last] = value;
}

/** Why columns with these names cannot be in one document; `undefined` if they can. */
export function conflict(paths: readonly string[]): string | undefined {
  const all = new Set<string>();
  for (const path of paths) {
    if (all.has(path)) return `two fields would be called ${path}`;
    all.add(path);
  }
  for (const path of paths) {
    const names = path.split(".");
    if (names.some((name) => name === "") && names.length > 1) return `${path} has a dot at an end, or two side by side`;
    for (let length = 1; length < names.length; length++) {
      const outer = names.slice(0, length).join(".");
      if (all.has(outer)) return `${outer} cannot be a value and hold ${path}`;
    }
  }
  return undefined;
}

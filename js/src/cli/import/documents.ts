// Files of documents: inspects their first rows, and yields all rows in batches.

import { EJSON, type Document } from "bson";
import type { BadRow, Batch, FieldGuess, OpenedFile, ReadOptions } from "../formats/model.js";
import { TIME_NAME, roles, typeOfValues, type Sampled } from "./guess.js";
import { BATCH_ROWS, SAMPLE_ROWS } from "./limits.js";
import { bsonTypeOf } from "./values.js";
import { timeOfText, unitOf, UNIT_NAMES, type TimeUnit } from "./times.js";

/** Documents that were read, and rows that could not be read. */
export interface Piece {
  documents: Document[];
  lines: number[];
  bad: BadRow[];
}

/** Inspects a file of documents. `pieces` yields all of them, from the first. */
export async function openDocuments(pieces: AsyncGenerator<Piece>, name: string, options: ReadOptions): Promise<OpenedFile> {
  const first: Piece = { documents: [], lines: [], bad: [] };
  while (first.documents.length < SAMPLE_ROWS) {
    const { value, done } = await pieces.next();
    if (done) break;
    append(first, value);
  }
  if (first.documents.length + first.bad.length === 0) throw new Error(`${name} has no rows`);
  const sample = first.documents.slice(0, SAMPLE_ROWS);
  const fields = fieldsOf(sample);
  const guesses = fields.map(({ name: field, type, values }) => ({ name: field, type, sample: shown(values.find((value) => value !== undefined && value !== null)) }) as FieldGuess);
  const times = fields.map((field, at) => asTimes(field, options, guesses[at]!));
  return { fields: guesses, ...roles(times, options), batches: () => batches(first, pieces) };
}

function append(to: Piece, { documents, lines, bad }: Piece): void {
  for (const document of documents) to.documents.push(document);
  for (const line of lines) to.lines.push(line);
  for (const one of bad) to.bad.push(one);
}

async function* batches(first: Piece, pieces: AsyncGenerator<Piece>): AsyncGenerator<Batch> {
  let waiting = first;
  const take = (end: number): Batch => {
    const batch = { documents: waiting.documents.slice(0, end), lines: waiting.lines.slice(0, end), bad: waiting.bad };
    waiting = { documents: waiting.documents.slice(end), lines: waiting.lines.slice(end), bad: [] };
    return batch;
  };
  for (;;) {
    while (waiting.documents.length >= BATCH_ROWS) yield take(BATCH_ROWS);
    try {
      const { value, done } = await pieces.next();
      if (done) break;
      append(waiting, value);
    } catch (error) {
      // The rows before the damage are intact.
      if (waiting.documents.length + waiting.bad.length > 0) yield take(waiting.documents.length);
      throw error;
    }
  }
  if (waiting.documents.length + waiting.bad.length > 0) yield take(waiting.documents.length);
}

/** The top-level fields of documents, in order of first occurrence. */
function fieldsOf(documents: readonly Document[]): Sampled[] {
  const found = new Map<string, unknown[]>();
  for (const [row, document] of documents.entries()) {
    for (const [name, value] of Object.entries(document)) {
      let values = found.get(name);
      if (!values) found.set(name, (values = new Array(documents.length)));
      values[row] = value;
    }
  }
  return [...found].map(([name, values]) => ({ name, type: typeOfValues(values), values: Array.from(values) }));
}

/** Converts a field of texts or numbers to times, because plain JSON has no dates. Records its findings in `guess`. */
function asTimes(field: Sampled, { timeField, times, types }: ReadOptions, guess: FieldGuess): Sampled {
  const { name, type, values } = field;
  const isChosen = name === timeField || types.get(name) === "date";
  if (type === "date" || !(isChosen || (timeField === undefined && TIME_NAME.test(name) && !types.has(name)))) return field;
  const given = values.filter((value) => value !== undefined && value !== null);
  let unit: TimeUnit | undefined;
  let read: (value: any) => number = (value) => timeOfText(String(value), times);
  if (type === "mixed") read = (value) => (value instanceof Date ? value.getTime() : timeOfText(String(value), times));
  else if (["number", "int", "long"].includes(type)) {
    unit = times?.unit ?? unitOf(given.map(Number));
    if (!unit) return field;
    read = (value) => timeOfText(String(value), { unit });
  } else if (type !== "string") return field;
  const dates = values.map((value) => (value === undefined || value === null ? undefined : new Date(read(value))));
  // A field with the name of a time is one if most of its values are times.
  if (dates.filter((date) => date !== undefined && Number.isNaN(date.getTime())).length * 2 >= given.length) return field;
  guess.type = "date";
  guess.from = unit ?? "text";
  guess.note = unit ? `${UNIT_NAMES[unit]} since 1970` : "from text";
  return { name, type: "date", values: dates.map((date) => (date && Number.isNaN(date.getTime()) ? undefined : date)) };
}

function shown(value: unknown): string {
  if (value === undefined) return "";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString();
  if (["Long", "Decimal128", "ObjectId"].includes(bsonTypeOf(value) ?? "")) return String(value);
  return typeof value === "object" ? EJSON.stringify(value, { relaxed: true }) : String(value);
}

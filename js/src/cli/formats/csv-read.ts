// Reads delimited text: a line of names, then a row of cells each, with commas, semicolons, tabs or bars between them.

import { DelimitedReader, delimiterOf, type Records } from "../import/delimited.js";
import { TIME_NAME, roles, type Sampled } from "../import/guess.js";
import { decoderOf } from "../import/text.js";
import { UNIT_NAMES, orderOf, timeOfText, unitOf, type TimeRules } from "../import/times.js";
import { Misfit, fromText, isNothing, isNumberText, type FieldType, type FromText, type ValueRules } from "../import/values.js";
import { BATCH_ROWS, SAMPLE_ROWS } from "../import/limits.js";
import type { BadRow, Batch, FieldGuess, FileFormat, InputFile, OpenedFile, ReadOptions } from "./model.js";

const NAMES: Record<string, string> = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars" };
const ORDERS = { dmy: "day/month/year", mdy: "month/day/year" };

export const CSV: FileFormat = { name: "csv", endings: [".csv", ".tsv", ".tab", ".txt"], open };

interface Column {
  name: string;
  type: FieldType;
  note: string | undefined;
  read: FromText;
}

async function open(file: InputFile, options: ReadOptions): Promise<OpenedFile> {
  const text = texts(file, options.encoding);
  let beginning = "";
  let isEnd = false;
  // The first line determines the delimiter and the line ending.
  while (!isEnd && !/[\n\r]./s.test(beginning)) {
    const { value, done } = await text.next();
    if (done) isEnd = true;
    else beginning += value;
  }
  if (beginning.trim() === "") throw new Error(`${file.name} is empty`);
  if (beginning.includes("\0")) throw new Error(`${file.name} is not text`);
  const delimiter = options.delimiter ?? (/\.(tsv|tab)$/i.test(file.name.replace(/\.gz$/i, "")) ? "\t" : delimiterOf(beginning.split(/[\n\r]/)[0]!));
  const reader = new DelimitedReader(delimiter, beginning);
  const first: Records = { cells: [], lines: [], bad: [] };
  const add = ({ cells, lines, bad }: Records): void => {
    for (const row of cells) first.cells.push(row);
    for (const line of lines) first.lines.push(line);
    first.bad.push(...bad);
  };
  add(reader.push(beginning));
  while (!isEnd && first.cells.length <= SAMPLE_ROWS) {
    const { value, done } = await text.next();
    if (done) isEnd = true;
    else add(reader.push(value));
  }
  if (isEnd) add(reader.end());
  const names = namesOf(options.names ?? first.cells.shift() ?? []);
  if (!options.names) first.lines.shift();
  const columns = columnsOf(names, first.cells, { ...options, hasCommas: delimiter !== "," });
  const converter = new RowReader(columns);
  const sampled = converter.sample(first.cells.slice(0, SAMPLE_ROWS));
  if (first.cells.length === 0 && first.bad.length === 0) throw new Error(`${file.name} has no rows`);
  return {
    about: `text, separated by ${NAMES[delimiter] ?? `“${delimiter}”`}`,
    fields: columns.map(({ name, type, note }, at) => ({ name, type, note, sample: first.cells.map((cells) => cells[at]).find((cell) => cell !== undefined && cell !== "") ?? "" }) satisfies FieldGuess),
    ...roles(sampled, options),
    isTyped: true,
    async *batches() {
      yield* converter.take(first, isEnd);
      first.cells = [];
      if (isEnd) return;
      try {
        for await (const piece of text) yield* converter.take(reader.push(piece), false);
      } catch (error) {
        // The rows before the damage are intact.
        yield* converter.take({ cells: [], lines: [], bad: [] }, true);
        throw error;
      }
      yield* converter.take(reader.end(), true);
    },
  };
}

/** The text of a file, in pieces. */
async function* texts(file: InputFile, encoding: string | undefined): AsyncGenerator<string, undefined> {
  const decoder = decoderOf(file, encoding);
  for await (const bytes of file.bytes()) yield decoder.push(bytes);
  const rest = decoder.end();
  if (rest !== "") yield rest;
  return undefined;
}

/** Names that fields can have: not empty, all different, without a dollar in front. */
function namesOf(cells: readonly string[]): string[] {
  const names = new Set<string>();
  for (const [place, cell] of cells.entries()) {
    const base = cell.trim().replaceAll("\0", "").replace(/^\$+/, "") || `column ${place + 1}`;
    let name = base;
    for (let n = 2; names.has(name); n++) name = `${base} ${n}`;
    names.add(name);
  }
  return [...names];
}

function columnsOf(names: readonly string[], rows: readonly string[][], options: ReadOptions & ValueRules): Column[] {
  const sample = rows.filter((cells) => cells.length >= names.length).slice(0, SAMPLE_ROWS);
  return names.map((name, place) => {
    const cells = sample.map((row) => row[place]!.trim()).filter((cell) => !isNothing(cell));
    const times = timeRules(cells, options.times);
    const type = (options.types.get(name) as FieldType | undefined) ?? typeOf(name, cells, options, times);
    // Numeric times have a unit. Textual times may have two orders.
    const unit = type === "date" && times.unit && cells.some((cell) => /^[-+]?\d+(\.\d*)?$/.test(cell)) ? `${UNIT_NAMES[times.unit]} since 1970` : undefined;
    const order = type === "date" && times.order && cells.some((cell) => cell.includes("/")) ? ORDERS[times.order] : undefined;
    return { name, type, note: unit ?? order, read: fromText(type, { times, hasCommas: options.hasCommas }) };
  });
}

function timeRules(cells: readonly string[], given: TimeRules = {}): TimeRules {
  const numbers = cells.filter((cell) => isNumberText(cell, false)).map(Number);
  return { ...given, unit: given.unit ?? unitOf(numbers), order: given.order ?? orderOf(cells) };
}

/** The type that all cells have; `string` if they have no common one, and `mixed` if there are none yet. */
function typeOf(name: string, cells: readonly string[], { timeField, hasCommas = false }: ReadOptions & ValueRules, times: TimeRules): FieldType {
  if (name === timeField) return "date";
  if (cells.length === 0) return "mixed";
  // A field with the name of a time is one if most of its values are times.
  if (timeField === undefined && TIME_NAME.test(name) && cells.filter((cell) => !Number.isNaN(timeOfText(cell, times))).length > cells.length / 2) return "date";
  if (cells.every((cell) => isNumberText(cell, hasCommas))) {
    return cells.some((cell) => /^[-+]?\d{16,}$/.test(cell) && !Number.isSafeInteger(Number(cell))) ? wideType(cells) : "number";
  }
  if (cells.every((cell) => /^(true|false)$/i.test(cell))) return "bool";
  if (cells.some((cell) => isNumberText(cell, hasCommas))) return "string";
  return cells.every((cell) => !Number.isNaN(timeOfText(cell, times))) ? "date" : "string";
}

/** The type of whole numbers, some of which have more digits than a double keeps. */
function wideType(cells: readonly string[]): FieldType {
  return cells.every((cell) => /^[-+]?\d+$/.test(cell) && BigInt.asIntN(64, BigInt(cell.replace("+", ""))) === BigInt(cell.replace("+", ""))) ? "long" : "string";
}

/** Makes batches of records. */
class RowReader {
  readonly #columns: readonly Column[];
  #values: unknown[][] = [];
  #lines: number[] = [];
  #bad: BadRow[] = [];

  constructor(columns: readonly Column[]) {
    this.#columns = columns;
    this.#clear();
  }

  /** The values of records, without those that do not fit. */
  sample(rows: readonly string[][]): Sampled[] {
    for (const cells of rows) this.#add(cells, 0);
    const sampled = this.#columns.map(({ name, type }, at) => ({ name, type, values: this.#values[at]! }));
    this.#clear();
    return sampled;
  }

  /** Yields full batches. The rest waits for more records, unless these are the last ones. */
  *take({ cells, lines, bad }: Records, isEnd: boolean): Generator<Batch> {
    this.#bad.push(...bad);
    for (const [at, row] of cells.entries()) {
      this.#add(row, lines[at]!);
      if (this.#lines.length === BATCH_ROWS) yield this.#batch();
    }
    if (isEnd && this.#lines.length + this.#bad.length > 0) yield this.#batch();
  }

  #batch(): Batch {
    const columns: Record<string, unknown[]> = Object.create(null);
    for (const [at, { name, type }] of this.#columns.entries()) if (type !== "skip") columns[name] = this.#values[at]!;
    const batch = { columns, rows: this.#lines.length, lines: this.#lines, bad: this.#bad.sort((a, b) => a.line - b.line) };
    this.#clear();
    return batch;
  }

  #clear(): void {
    this.#values = this.#columns.map(() => []);
    this.#lines = [];
    this.#bad = [];
  }

  #add(cells: readonly string[], line: number): void {
    const columns = this.#columns;
    const values = this.#values;
    // Some programs end each line with a separator.
    if (cells.length !== columns.length && !(cells.length > columns.length && cells.slice(columns.length).every((cell) => cell === ""))) {
      this.#bad.push({ line, message: `has ${cells.length} cells instead of ${columns.length}` });
      return;
    }
    let at = 0;
    try {
      for (; at < columns.length; at++) values[at]!.push(columns[at]!.read(cells[at]!));
      this.#lines.push(line);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      this.#bad.push({ line, message: `${columns[at]!.name}: ${error.message}` });
      while (--at >= 0) values[at]!.pop();
    }
  }
}

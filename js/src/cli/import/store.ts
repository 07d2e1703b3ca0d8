// Inserts the rows of a file, and records those that were refused.

import type { Document } from "bson";
import type { Collection } from "../../index.js";
import type { BadRow } from "../formats/model.js";
import type { Shaped } from "./shape.js";

/** `BadValue`, with which an insert refuses all of its rows because of one. */
const BAD_VALUE = 2;

/** Inserts batches into a collection. */
export class Store {
  readonly #collection: Collection<any>;
  readonly #isStrict: boolean;
  readonly #onBad: (bad: BadRow) => void;
  /** Rows that are stored. */
  rows = 0;
  bad = 0;

  constructor(collection: Collection<any>, isStrict: boolean, onBad: (bad: BadRow) => void) {
    this.#collection = collection;
    this.#isStrict = isStrict;
    this.#onBad = onBad;
  }

  /** Stores all valid rows, or with `isStrict` only those before the first bad row. Resolves to whether to go on. */
  async add({ columns, documents, lines, bad }: Shaped): Promise<boolean> {
    const [first] = bad;
    const end = this.#isStrict && first ? lines.filter((line) => line < first.line).length : lines.length;
    const insert = documents ? this.#documents(documents) : this.#columns(columns!);
    const refused = await this.#insert(insert, 0, end);
    const all = [...bad, ...refused.map(({ row, message }) => ({ line: lines[row]!, message }))].sort((a, b) => a.line - b.line);
    const told = this.#isStrict ? all.slice(0, 1) : all;
    for (const one of told) this.#onBad(one);
    this.bad += told.length;
    return !this.#isStrict || all.length === 0;
  }

  #documents(documents: readonly Document[]): Insert {
    return (start, end) => this.#collection.insertMany(documents.slice(start, end), { ordered: this.#isStrict });
  }

  #columns(columns: Record<string, any>): Insert {
    return (start, end) => {
      const part = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.slice(start, end)]));
      return this.#collection.insertColumns(part, { ordered: this.#isStrict, timeUnit: "ms" });
    };
  }

  /** Inserts rows, and returns those that were refused. If one row makes the whole insert fail, it tries each half. */
  async #insert(insert: Insert, start: number, end: number): Promise<{ row: number; message: string }[]> {
    if (start === end) return [];
    try {
      const { insertedCount } = await insert(start, end);
      this.rows += insertedCount;
      return [];
    } catch (error) {
      const { writeErrors, insertedCount, code, message } = error as { writeErrors?: { index: number; errmsg: string }[]; insertedCount: number; code?: number; message: string };
      if (writeErrors) {
        this.rows += insertedCount;
        return writeErrors.map(({ index, errmsg }) => ({ row: start + index, message: errmsg }));
      }
      if (code !== BAD_VALUE && !(error instanceof TypeError)) throw error;
      if (end - start === 1) return [{ row: start, message: message.replace(/^Document \d+, /, "") }];
      const middle = (start + end) >> 1;
      const before = await this.#insert(insert, start, middle);
      if (this.#isStrict && before.length > 0) return before;
      return [...before, ...(await this.#insert(insert, middle, end))];
    }
  }
}

type Insert = (start: number, end: number) => Promise<{ insertedCount: number }>;

// What a file format of `import` and `export` is. Readers and writers of all formats have these shapes.

import type { Document } from "bson";
import type { Collection, FindCursor, AggregationCursor } from "../../index.js";
import type { TimeRules, TimeUnit } from "../import/times.js";

/** Bytes that are read once, in order. */
export interface InputFile {
  /** The name that is shown; a format is known by its ending, without `.gz`. */
  readonly name: string;
  /** The path, for formats whose directory stands at the end; `undefined` for standard input, and for a file that is compressed as a whole. */
  readonly path: string | undefined;
  /** Length in bytes, compressed if the file is; `undefined` if it is not known. */
  readonly size: number | undefined;
  /** The first bytes, decompressed: a format may know itself by them. */
  readonly beginning: Uint8Array;
  /** The bytes, decompressed. May be called once. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Bytes of the file, compressed if it is, that have been read until now. */
  bytesRead(): number;
  /** Ends a read that waits for bytes, too. */
  close(): void;
}

/** A row that cannot be read. */
export interface BadRow {
  /** The line of a text, or the number of the row, from 1. */
  line: number;
  message: string;
}

/** Rows that are inserted together: documents, or columns of one length. */
export type Batch = (
  | { readonly documents: readonly Document[] }
  | { readonly columns: Readonly<Record<string, any>>; readonly rows: number }
) & {
  /** The line of each row, or the number of the first row if they follow one another. */
  readonly lines: readonly number[] | number;
  readonly bad?: readonly BadRow[];
};

/** A field of a file, as it is shown before the import. */
export interface FieldGuess {
  name: string;
  /** `number`, `int`, `long`, `decimal`, `date`, `string`, `bool`, `objectId`, `object`, `mixed` or `skip`. */
  type: string;
  /** Its first value, as text. */
  sample: string;
  /** What else is known of it, such as the unit of its times. */
  note?: string | undefined;
  /** What values of the type `date` are in the batches, where they are no dates yet: texts, or numbers of a unit. Numbers of columns are milliseconds otherwise. */
  from?: "text" | TimeUnit | undefined;
}

/** How long the buckets of a collection are. */
export type Span = { granularity: "seconds" | "minutes" | "hours" } | { bucketMaxSpanSeconds: number; bucketRoundingSeconds: number };

export interface ReadOptions {
  /** Types that the user has chosen, by field. They win over guesses. */
  types: ReadonlyMap<string, string>;
  /** Columns of a text without a line of names. */
  names?: readonly string[] | undefined;
  /** What separates cells of delimited text; guessed if it is not given. */
  delimiter?: string | undefined;
  /** The encoding of text. Default: UTF-8, or the UTF-16 that a byte order mark tells. */
  encoding?: string | undefined;
  /** The field that holds the time, if it is known. */
  timeField?: string | undefined;
  /** How times are read from texts and numbers. A format that reads them adds what it has found out, such as the unit. */
  times?: TimeRules | undefined;
}

/** A file that has been opened: its beginning has been looked at. */
export interface OpenedFile {
  /** What the file is, for people: `CSV, separated by commas`. */
  about?: string | undefined;
  fields: FieldGuess[];
  /** Guesses for a collection that is created. */
  timeField?: string | undefined;
  metaField?: string | undefined;
  span?: Span | undefined;
  /** Whether the values of the batches have the types of `fields` already, those that the user has chosen among them. Otherwise they are converted. */
  isTyped?: boolean | undefined;
  batches(): AsyncIterable<Batch>;
}

export type Cursor = FindCursor<any, any> | AggregationCursor<any, any>;

export interface WriteOptions {
  collection: Collection<any>;
  /** Fields, in their order; all if it is not given. Text needs them for its line of names. */
  fields?: readonly string[] | undefined;
  /** True if the user has named the fields: others are left out. Without it, a field that is not among them is an error, so that nothing is lost. */
  fieldsChosen?: boolean | undefined;
  /** JSON with the type of each number. The cursor then reads with `promoteValues: false`. */
  canonical?: boolean | undefined;
  /** Characters in a line of a table. */
  width?: number | undefined;
}

/** A format. A row of the tables of `import` and `export`. */
export interface FileFormat {
  /** `csv`, `tsv`, `ndjson`, `json`, `bson`, `arrow` or `parquet`: what `--format` takes. */
  readonly name: string;
  /** Endings of file names, with their dot. */
  readonly endings: readonly string[];
  /** True if `write` needs the fields of all rows before the first one. */
  readonly needsFields?: boolean;
  /** True if `write` wants values with their stored types: a cursor with `promoteValues: false`. */
  readonly keepsTypes?: boolean;
  /** True if people cannot read it, so that a terminal does not get it. */
  readonly isBinary?: boolean;
  /** Whether a file begins as this format does. Asked if neither `--format` nor its name tells. */
  matches?(beginning: Uint8Array): boolean;
  open?(file: InputFile, options: ReadOptions): Promise<OpenedFile>;
  /** Bytes of the file, in pieces that are written as they come. `onRows` is told of every piece. */
  write?(cursor: Cursor, options: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array>;
}

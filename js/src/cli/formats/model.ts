// The interfaces of a file format of `import` and `export`. The readers and writers of all formats implement them.

import type { Document } from "bson";
import type { Collection, FindCursor, AggregationCursor } from "../../index.js";
import type { TimeRules, TimeUnit } from "../import/times.js";

/** Bytes that are read once, in order. */
export interface InputFile {
  /** The name that is shown. Its ending, without `.gz`, determines the format. */
  readonly name: string;
  /** The path, for formats with their directory at the end; `undefined` for standard input, and for a file that is compressed as a whole. */
  readonly path: string | undefined;
  /** Length in bytes, compressed if the file is; `undefined` if it is not known. */
  readonly size: number | undefined;
  /** The first bytes, decompressed, by which a format may be recognised. */
  readonly beginning: Uint8Array;
  /** The bytes, decompressed. May be called once. */
  bytes(): AsyncIterable<Uint8Array>;
  /** The number of bytes read so far, compressed if the file is. */
  bytesRead(): number;
  /** Closes the file. Also ends a read that waits for bytes. */
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
  /** Further findings, such as the unit of its times. */
  note?: string | undefined;
  /** How batches hold values of the type `date` that are not dates yet: as texts, or as numbers of a unit. Otherwise, numbers of columns are milliseconds. */
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
  /** The encoding of text. Default: UTF-8, or UTF-16 if a byte order mark indicates it. */
  encoding?: string | undefined;
  /** The field that holds the time, if it is known. */
  timeField?: string | undefined;
  /** How times are read from texts and numbers. A format that reads them adds its findings, such as the unit. */
  times?: TimeRules | undefined;
}

/** An opened file, whose beginning has been inspected. */
export interface OpenedFile {
  /** A readable description of the file: `CSV, separated by commas`. */
  about?: string | undefined;
  fields: FieldGuess[];
  /** Guesses for a collection that is created. */
  timeField?: string | undefined;
  metaField?: string | undefined;
  span?: Span | undefined;
  /** Whether the values of the batches already have the types of `fields`, including the types that the user has chosen. Otherwise they are converted. */
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

/** A format: an entry of the tables of `import` and `export`. */
export interface FileFormat {
  /** `csv`, `tsv`, `ndjson`, `json`, `bson`, `arrow` or `parquet`: what `--format` takes. */
  readonly name: string;
  /** Endings of file names, with their dot. */
  readonly endings: readonly string[];
  /** True if `write` needs the fields of all rows before the first one. */
  readonly needsFields?: boolean;
  /** True if `write` wants values with their stored types: a cursor with `promoteValues: false`. */
  readonly keepsTypes?: boolean;
  /** True if it is not readable text, so that it is not written to a terminal. */
  readonly isBinary?: boolean;
  /** Whether a file begins like this format. Called if neither `--format` nor the name of the file decides. */
  matches?(beginning: Uint8Array): boolean;
  open?(file: InputFile, options: ReadOptions): Promise<OpenedFile>;
  /** Bytes of the file, in pieces that are written as they come. `onRows` is called for every piece. */
  write?(cursor: Cursor, options: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array>;
}

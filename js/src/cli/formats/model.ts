// What a file format of `import` and `export` is. Readers and writers of all formats have these shapes.

import type { Document } from "bson";
import type { Collection, FindCursor, AggregationCursor } from "../../index.js";

/** Bytes that are read once, in order. */
export interface InputFile {
  /** The name that is shown; a format is known by its ending, without `.gz`. */
  readonly name: string;
  /** The path, for formats whose directory stands at the end; `undefined` for standard input. */
  readonly path: string | undefined;
  /** Length in bytes, compressed if the file is; `undefined` if it is not known. */
  readonly size: number | undefined;
  /** The bytes, decompressed. May be called once. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Bytes of the file, compressed if it is, that have been read until now. */
  bytesRead(): number;
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
}

export interface ReadOptions {
  /** Types that the user has chosen, by field. They win over guesses. */
  types: ReadonlyMap<string, string>;
  /** Columns of a text without a line of names. */
  names?: readonly string[] | undefined;
  /** What separates cells of delimited text; guessed if it is not given. */
  delimiter?: string | undefined;
}

/** A file that has been opened: its beginning has been looked at. */
export interface OpenedFile {
  fields: FieldGuess[];
  /** Guesses for a collection that is created. */
  timeField?: string | undefined;
  metaField?: string | undefined;
  batches(): AsyncIterable<Batch>;
}

export type Cursor = FindCursor<any, any> | AggregationCursor<any, any>;

export interface WriteOptions {
  collection: Collection<any>;
  /** Fields, in their order; all if it is not given. Text needs them for its line of names. */
  fields?: readonly string[] | undefined;
}

/** A format. A row of the tables of `import` and `export`. */
export interface FileFormat {
  /** `csv`, `ndjson`, `bson`, `arrow` or `parquet`: what `--format` takes. */
  readonly name: string;
  /** Endings of file names, with their dot. */
  readonly endings: readonly string[];
  open?(file: InputFile, options: ReadOptions): Promise<OpenedFile>;
  /** Bytes of the file, in pieces that are written as they come. `onRows` is told of every piece. */
  write?(cursor: Cursor, options: WriteOptions, onRows: (rows: number) => void): AsyncIterable<Uint8Array>;
}

// BSON as this package writes it: like the npm package `bson`, but every JavaScript number is a double.

import { deserialize, serialize, type DeserializeOptions, type Double, type Int32, type Long, type ObjectId } from "bson";
import { BadValueError, TimepailError } from "./errors.js";
import type { BSONReadOptions, Document } from "./types.js";
import { writeText } from "./text.js";

/** Maximum nesting depth of a document. */
export const DEPTH_MAX = 180;
/** Thrown for a value that is nested too deeply, by code that does not know the root value. */
const DEEP = {};

// BSON type bytes.
const DOUBLE = 1;
const STRING = 2;
const DOCUMENT = 3;
const ARRAY = 4;
const OBJECT_ID = 7;
const BOOLEAN = 8;
const DATE = 9;
const NULL = 10;
const INT32 = 16;
const INT64 = 18;

/** `_bsontype` of a class of the package `bson`. The package uses it to recognise values made by another copy of itself. */
export function bsonType(value: object): unknown {
  return (value as { _bsontype?: unknown })._bsontype;
}

/** Marks documents that are already encoded. The symbol is private, so no value from outside carries it. */
const RAW = Symbol();

/** A document that is already encoded. */
export type RawDocument = Uint8Array & { _bsontype: typeof RAW };

/** Encodes a document that goes into an array of a command. */
export function rawDocument(document: object): RawDocument {
  return Object.assign(encodeDocument(document, 2), { _bsontype: RAW } as const);
}

/** Whether `value` is a plain object, such as an object literal creates. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Whether `value` is a class instance without visible fields: a promise, a set, an error. Encoded as an object it would be empty, and as a filter it would match
 * everything. Plain objects of other realms do not count.
 */
export function isOpaque(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null && !(value instanceof Map) && Object.keys(value).length === 0;
}

/** Whether `value` is a `Date`, of this realm or another. */
export function isDate(value: unknown): value is Date {
  return value instanceof Date || Object.prototype.toString.call(value) === "[object Date]";
}

/** Milliseconds of a valid `Date`. */
function dateMs(value: Date): number {
  const ms = value.getTime();
  if (ms !== ms) throw new BadValueError("Invalid Date");
  return ms;
}

/** `value`, if it fits 64 bits. */
function int64(value: bigint): bigint {
  if (BigInt.asIntN(64, value) !== value) throw new BadValueError(`${value} does not fit a 64-bit integer`);
  return value;
}

/** Appends BSON values to a growing buffer. */
export class BsonWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  /** How many bytes are written. */
  get length(): number {
    return this.#at;
  }

  /** The bytes written so far, as a view. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Returns a copy of the bytes written so far, and resets the writer. */
  copy(): Uint8Array {
    const end = this.#at;
    this.#at = 0;
    return this.#bytes.slice(0, end);
  }

  /** Ensures capacity, and returns the current position. */
  #reserve(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(at + bytes, this.#bytes.length * 2));
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }

  /** Advances by `bytes` bytes, and returns the position before them. Call it before you access the buffer, because it may replace the buffer. */
  #take(bytes: number): number {
    const at = this.#reserve(bytes);
    this.#at = at + bytes;
    return at;
  }

  /** Writes a type byte, then the value's bytes. Writes nothing and returns false for `undefined`, functions and symbols. */
  tagged(value: unknown): boolean {
    const at = this.#take(1);
    let type;
    try {
      type = this.#value(value, 0);
    } catch (error) {
      throw error === DEEP ? tooDeep(value) : error;
    }
    if (type === 0) this.#at = at;
    else this.#bytes[at] = type;
    return type !== 0;
  }

  /** Writes a document. `depth` is its nesting level. */
  document(value: object, depth: number): void {
    if (depth > DEPTH_MAX) throw DEEP;
    const start = this.#take(4);
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) this.#element(String(i), value[i] ?? null, depth) || this.#element(String(i), null, depth);
    } else if (value instanceof Map) {
      for (const [key, inner] of value) this.#element(String(key), inner, depth);
    } else {
      for (const key of Object.keys(value)) this.#element(key, (value as Document)[key], depth);
    }
    const end = this.#take(1);
    this.#bytes[end] = 0;
    this.#view.setInt32(start, this.#at - start, true);
  }

  #element(key: string, value: unknown, depth: number): boolean {
    const start = this.#reserve(key.length * 3 + 2);
    const end = start + 1 + writeText(key, this.#bytes, start + 1);
    if (key.includes("\0")) throw new BadValueError(`The field name ${JSON.stringify(key)} contains a NUL character`);
    this.#bytes[end] = 0;
    this.#at = end + 1;
    const type = this.#value(value, depth);
    if (type === 0) this.#at = start;
    else this.#bytes[start] = type;
    return type !== 0;
  }

  /** Writes the bytes of a value and returns its type, or 0 for values that BSON omits. */
  #value(value: unknown, depth: number): number {
    switch (typeof value) {
      case "number":
        return this.#double(value);
      case "string": {
        const at = this.#reserve(value.length * 3 + 5);
        const end = at + 4 + writeText(value, this.#bytes, at + 4);
        this.#bytes[end] = 0;
        this.#view.setInt32(at, end - at - 3, true);
        this.#at = end + 1;
        return STRING;
      }
      case "boolean":
        this.#take(1);
        this.#bytes[this.#at - 1] = value ? 1 : 0;
        return BOOLEAN;
      case "bigint":
        return this.#int64(int64(value), INT64);
      case "object":
        return value === null ? NULL : this.#object(value, depth);
      default:
        return 0;
    }
  }

  #object(value: object, depth: number): number {
    switch (bsonType(value)) {
      case undefined:
        break;
      case RAW:
        this.#raw(value as RawDocument);
        return DOCUMENT;
      case "ObjectId":
        // An id of another length would make the document unreadable.
        if ((value as ObjectId).id.length !== 12) throw new BadValueError("Invalid ObjectId");
        this.#raw((value as ObjectId).id);
        return OBJECT_ID;
      case "Double":
        return this.#double((value as Double).value);
      case "Int32":
        this.#take(4);
        this.#view.setInt32(this.#at - 4, (value as Int32).value, true);
        return INT32;
      case "Long":
        this.#take(8);
        this.#view.setInt32(this.#at - 8, (value as Long).low, true);
        this.#view.setInt32(this.#at - 4, (value as Long).high, true);
        return INT64;
      default:
        return this.#other(value);
    }
    const toBSON = (value as { toBSON?: unknown }).toBSON;
    if (typeof toBSON === "function") return this.#value(toBSON.call(value), depth + 1);
    if (Array.isArray(value)) {
      this.document(value, depth + 1);
      return ARRAY;
    }
    if (!isPlain(value)) {
      if (isDate(value)) return this.#int64(BigInt(dateMs(value)), DATE);
      if (value instanceof RegExp || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return this.#other(value);
      if (isOpaque(value)) throw new BadValueError(`${String(Object.prototype.toString.call(value))} is not a plain object: is an await missing?`);
    }
    this.document(value, depth + 1);
    return DOCUMENT;
  }

  /** Types that are rare in measurements are left to the package `bson`. */
  #other(value: object): number {
    let bytes: Uint8Array;
    try {
      bytes = serialize({ v: value });
    } catch (cause) {
      throw new BadValueError((cause as Error).message, cause);
    }
    // Layout: length, type, "v", NUL, value, NUL.
    this.#raw(bytes.subarray(7, bytes.length - 1));
    return bytes[4]!;
  }

  #raw(bytes: Uint8Array): void {
    const at = this.#take(bytes.length);
    this.#bytes.set(bytes, at);
  }

  #double(value: number): number {
    this.#take(8);
    this.#view.setFloat64(this.#at - 8, value, true);
    return DOUBLE;
  }

  #int64(value: bigint, type: number): number {
    this.#take(8);
    this.#view.setBigInt64(this.#at - 8, value, true);
    return type;
  }
}

/** Creates the error for a value that is nested too deeply. It has the path, and says whether the value contains itself. */
export function tooDeep(root: unknown): TimepailError {
  const path: string[] = [];
  const above = new Set<unknown>();
  const search = (value: unknown): TimepailError | undefined => {
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || bsonType(value) !== undefined) return undefined;
    const isCircular = above.has(value);
    if (isCircular || above.size === DEPTH_MAX) {
      const at = path.length > 8 ? [...path.slice(0, 8), "…"] : path;
      const where = `The value at ${JSON.stringify(at.join("."))}`;
      return isCircular ? new BadValueError(`${where} contains itself`) : overflow(where);
    }
    above.add(value);
    for (const [key, inner] of value instanceof Map ? value : Object.entries(value)) {
      path.push(String(key));
      const found = search(inner);
      if (found) return found;
      path.pop();
    }
    above.delete(value);
    return undefined;
  };
  // The search does not call `toBSON`, whose result may be nested more deeply.
  return search(root) ?? overflow("The value");
}

function overflow(where: string): TimepailError {
  return new TimepailError(`${where} is nested more than ${DEPTH_MAX} levels deep`, { code: 15, codeName: "Overflow" });
}

/** A spare writer for reuse, empty and with a small buffer. */
let idle: BsonWriter | undefined;

/** Encodes a document. `depth` is its nesting level in an enclosing document. */
export function encodeDocument(document: object, depth = 0): Uint8Array {
  const writer = idle ?? new BsonWriter();
  // A `toBSON` of the document may call this function again.
  idle = undefined;
  try {
    writer.document(document, depth);
  } catch (error) {
    throw error === DEEP ? tooDeep(document) : error;
  }
  const bytes = writer.copy();
  if (bytes.length < 65_536) idle = writer;
  return bytes;
}

/** Decodes a document. Throws a {@link BadValueError} for damaged bytes. */
export function decodeDocument(bytes: Uint8Array, options?: BSONReadOptions): Document {
  try {
    return deserialize(bytes, options as DeserializeOptions);
  } catch (cause) {
    throw new BadValueError(`A BSON value cannot be read: ${(cause as Error).message}`, cause);
  }
}

/**
 * Decodes values, each a type byte and the value's bytes, from `offsets[i]` to `offsets[i + 1]` of `bytes`. An empty range yields `undefined`.
 *
 * All but the simplest values are decoded as one array by the package `bson`, because each call of it costs as much as a small document.
 */
export function decodeValues(offsets: Uint32Array, bytes: Uint8Array, options: BSONReadOptions): unknown[] {
  const rows = offsets.length - 1;
  const values: unknown[] = new Array(rows);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const promotes = options.promoteValues !== false;
  const others: number[] = [];
  let size = 12;
  for (let row = 0; row < rows; row++) {
    const at = offsets[row]!;
    const length = offsets[row + 1]! - at;
    const tag = bytes[at];
    if (tag === DOUBLE && length === 9 && promotes) values[row] = view.getFloat64(at + 1, true);
    else if (tag === INT32 && length === 5 && promotes) values[row] = view.getInt32(at + 1, true);
    else if (tag === NULL && length === 1) values[row] = null;
    else if (length > 0) {
      others.push(row);
      size += length + 1;
    }
  }
  if (others.length === 0) return values;
  const document = new Uint8Array(size);
  let to = 10;
  for (const row of others) {
    let from = offsets[row]!;
    const end = offsets[row + 1]!;
    // Type, then an empty name. BSON arrays are read in order, and the names of their elements are ignored.
    document[to] = bytes[from++]!;
    to += 2;
    if (end - from < 48) while (from < end) document[to++] = bytes[from++]!;
    else {
      document.set(bytes.subarray(from, end), to);
      to += end - from;
    }
  }
  document[4] = ARRAY;
  const sizes = new DataView(document.buffer);
  sizes.setInt32(0, size, true);
  sizes.setInt32(6, size - 7, true);
  const read = decodeDocument(document, options)[""] as unknown[];
  if (read.length !== others.length) throw new BadValueError("A BSON value cannot be read: its length");
  others.forEach((row, i) => (values[row] = read[i]));
  return values;
}

// Commands as bytes: reads the names and positions of their fields, without decoding values.

import { ProtocolError } from "./errors.js";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** A field of a document, by its position. */
export interface RawField {
  name: string;
  type: number;
  /** Where its value begins. */
  start: number;
  /** Where the next field begins. */
  end: number;
}

/** Sizes in bytes of the types with a fixed length. */
const FIXED: Readonly<Record<number, number>> = { 1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 127: 0, 255: 0 };
const OBJECT = 3;
const ARRAY = 4;
const BINARY = 5;
const PATTERN = 11;

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The length that a document at `at` states. Checks that it ends at or before `end`, with a NUL. */
export function documentLength(bytes: Uint8Array, view: DataView, at: number, end: number): number {
  const length = end - at >= 5 ? view.getInt32(at, true) : 0;
  if (length < 5 || length > end - at || bytes[at + length - 1] !== 0) throw new ProtocolError("A document has an invalid length");
  return length;
}

/** The position of the NUL after a name at `at`. */
export function nameEnd(bytes: Uint8Array, at: number, end: number): number {
  const zero = bytes.indexOf(0, at);
  if (zero < 0 || zero >= end) throw new ProtocolError("A name has no terminating NUL");
  return zero;
}

/** The fields of a document, one after the other. The values are not inspected, because the engine does that. */
export function* rawFields(bytes: Uint8Array): Generator<RawField, void> {
  const view = viewOf(bytes);
  const last = documentLength(bytes, view, 0, bytes.length) - 1;
  let at = 4;
  while (at < last) {
    const type = bytes[at]!;
    const zero = nameEnd(bytes, at + 1, last);
    const start = zero + 1;
    const end = start + valueLength(bytes, view, type, start, last);
    if (end > last) throw new ProtocolError("A value does not end inside its document");
    yield { name: text(bytes.subarray(at + 1, zero)), type, start, end };
    at = end;
  }
}

function valueLength(bytes: Uint8Array, view: DataView, type: number, at: number, end: number): number {
  const fixed = FIXED[type];
  if (fixed !== undefined) return fixed;
  if (type === OBJECT || type === ARRAY) return documentLength(bytes, view, at, end);
  if (type === PATTERN) return nameEnd(bytes, nameEnd(bytes, at, end) + 1, end) + 1 - at;
  if (end - at < 4) throw new ProtocolError("A value does not end inside its document");
  const length = view.getInt32(at, true);
  if (length < 0) throw new ProtocolError("A length is negative");
  if (type === BINARY) return length + 5;
  // Strings, code and symbols. A database pointer has an id after its string, and code with scope includes its own length.
  if (type === 2 || type === 13 || type === 14) return length + 4;
  if (type === 12) return length + 16;
  if (type === 15) return length;
  throw new ProtocolError(`Unknown BSON type ${type}`);
}

/** The string of a field, if it is one. */
export function stringAt(bytes: Uint8Array, { type, start, end }: RawField): string | undefined {
  return type === 2 && end - start >= 5 ? text(bytes.subarray(start + 4, end - 1)) : undefined;
}

/** The number of a field, if it is one, or a boolean. */
export function numberAt(bytes: Uint8Array, { type, start }: RawField): number | undefined {
  const view = viewOf(bytes);
  if (type === 1) return view.getFloat64(start, true);
  if (type === 8) return bytes[start]!;
  if (type === 16) return view.getInt32(start, true);
  if (type === 18) return Number(view.getBigInt64(start, true));
  return undefined;
}

function text(bytes: Uint8Array): string {
  // Most names are short, and a call of the decoder takes longer than this loop.
  if (bytes.length < 24) {
    let made = "";
    for (const byte of bytes) {
      if (byte > 127) return decoded(bytes);
      made += String.fromCharCode(byte);
    }
    return made;
  }
  return decoded(bytes);
}

function decoded(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ProtocolError("A string is not valid UTF-8");
  }
}

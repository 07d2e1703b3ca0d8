// Packs many short strings into one run of UTF-8 with offsets, and unpacks them.

import { BadValueError } from "./errors.js";

const encoder = /* @__PURE__ */ new TextEncoder();
// Keep a byte order mark: it is a character like any other here.
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Strings end to end; string i lies from `offsets[i]` to `offsets[i + 1]`. */
export interface PackedText {
  offsets: Uint32Array;
  bytes: Uint8Array;
}

/** UTF-8 of `text`. A lone surrogate becomes U+FFFD. */
export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Writes `text` at `at`; there must be room for three bytes per UTF-16 unit. Returns the number of bytes. */
export function writeText(text: string, into: Uint8Array, at: number): number {
  const length = text.length;
  // A call into the host costs more than a short loop.
  if (length < 40) {
    let i = 0;
    for (; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 127) break;
      into[at + i] = unit;
    }
    if (i === length) return length;
  }
  return encoder.encodeInto(text, into.subarray(at)).written;
}

/** Packs `values`; `undefined` takes no bytes. */
export function packText(values: readonly (string | undefined)[]): PackedText {
  const count = values.length;
  const offsets = new Uint32Array(count + 1);
  // Encode everything in one call. If there are as many bytes as UTF-16 units, all is ASCII, and the lengths give the offsets.
  const joined = values.join("");
  let bytes = encoder.encode(joined);
  let end = 0;
  if (bytes.length === joined.length) {
    for (let i = 0; i < count; i++) {
      end += values[i]?.length ?? 0;
      offsets[i + 1] = end;
    }
    return { offsets, bytes };
  }
  // Encode strings separately, so that halves of a surrogate pair in neighbouring strings do not become one character.
  bytes = new Uint8Array(joined.length * 3);
  for (let i = 0; i < count; i++) {
    const value = values[i];
    if (value !== undefined) end += writeText(value, bytes, end);
    offsets[i + 1] = end;
  }
  return { offsets, bytes: bytes.subarray(0, end) };
}

/** Decodes one string. Throws a {@link BadValueError} for invalid UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new BadValueError("The text in a block is not UTF-8", cause);
  }
}

/** Returns a function that returns string i of what {@link packText} packed. */
export function unpackText(offsets: Uint32Array, bytes: Uint8Array): (index: number) => string {
  const all = decodeText(bytes);
  if (all.length === bytes.length) return (i) => all.substring(offsets[i]!, offsets[i + 1]!);
  return (i) => decodeText(bytes.subarray(offsets[i]!, offsets[i + 1]!));
}

// Splits JSON, piece by piece: one document per line, or one array of documents. Values may be those of Extended JSON.

import { EJSON, Long, type Document } from "bson";
import { timeOfText } from "./times.js";
import { Misfit, quoted } from "./values.js";

/** Whole numbers with this many digits may exceed what a double keeps. */
const WIDE = /\d{16}/;

/** Texts of documents, and the lines on which they begin. */
export interface JsonTexts {
  texts: string[];
  lines: number[];
}

/** Reads one document per line. */
export class LineSplitter {
  #rest = "";
  #line = 0;

  push(text: string): JsonTexts {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    return this.#number(lines);
  }

  end(): JsonTexts {
    return this.#number([this.#rest]);
  }

  #number(all: string[]): JsonTexts {
    const found: JsonTexts = { texts: [], lines: [] };
    for (const text of all) {
      this.#line++;
      if (text.trim() === "") continue;
      found.texts.push(text);
      found.lines.push(this.#line);
    }
    return found;
  }
}

/** Reads the elements of an array, regardless of its line breaks. */
export class ArraySplitter {
  #element = "";
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  #hasEnded = false;
  #line = 1;
  #startLine = 1;

  push(text: string): JsonTexts {
    const found: JsonTexts = { texts: [], lines: [] };
    let start = 0;
    const close = (end: number): void => {
      const element = this.#element + text.slice(start, end);
      this.#element = "";
      if (element.trim() === "") return;
      found.texts.push(element);
      found.lines.push(this.#startLine);
    };
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 10) this.#line++;
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === 92) this.#isEscaped = true;
        else if (code === 34) this.#isText = false;
        continue;
      }
      if (code <= 32) continue;
      const isClosing = code === 93 || code === 125;
      if (this.#hasEnded) throw new Error(`Line ${this.#line}: there is text after the end of the array`);
      if (this.#depth === 1 && (code === 44 || isClosing)) {
        close(at);
        start = at + 1;
      } else if (this.#depth === 1 && this.#element === "" && text.slice(start, at).trim() === "") {
        start = at;
        this.#startLine = this.#line;
      }
      if (code === 34) this.#isText = true;
      else if (code === 91 || code === 123) {
        if (this.#depth === 0) start = at + 1;
        this.#depth++;
      } else if (isClosing && --this.#depth === 0) this.#hasEnded = true;
    }
    if (this.#depth > 0) this.#element += text.slice(start);
    return found;
  }

  /** @throws Error for an array that has no end */
  end(): JsonTexts {
    if (!this.#hasEnded) throw new Error(`Line ${this.#line}: the array has no end`);
    return { texts: [], lines: [] };
  }
}

/** Parses a document. @throws Misfit */
export function documentOf(text: string): Document {
  let parsed: unknown;
  try {
    parsed = WIDE.test(text) ? parseWide(text) : JSON.parse(text);
  } catch (error) {
    if (error instanceof Misfit) throw error;
    throw new Misfit(`is not JSON: ${(error as Error).message}`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed) || "_bsontype" in parsed) throw new Misfit("is not a document");
  return text.includes('"$') ? (revived(parsed as Document) as Document) : (parsed as Document);
}

/** Parses JSON so that whole numbers keep all of their digits. */
function parseWide(text: string): unknown {
  // Newer runtimes pass the source text of a value. The types of TypeScript do not have it yet.
  const revive = (_key: string, value: unknown, context?: { source?: string }): unknown => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source ?? "";
    if (context && !/^-?\d+$/.test(source)) return value;
    if (!context) throw new Misfit(`${quoted(String(value))} may have more digits than a number can hold`);
    const integer = BigInt(source);
    if (integer === BigInt(value)) return value;
    if (integer !== BigInt.asIntN(64, integer)) throw new Misfit(`${quoted(source)} has more digits than a number can hold`);
    return Long.fromBigInt(integer);
  };
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

/** Converts Extended JSON to the values that it stands for. Plain numbers stay unchanged. */
function revived(value: unknown): unknown {
  if (typeof value !== "object" || value === null || "_bsontype" in value) return value;
  if (Array.isArray(value)) return value.map(revived);
  const [first] = Object.keys(value);
  if (first !== undefined && first.startsWith("$")) return extended(value as Document);
  const result: Document = {};
  for (const [name, inner] of Object.entries(value)) {
    if (name === "__proto__") Object.defineProperty(result, name, { value: revived(inner), enumerable: true, configurable: true, writable: true });
    else result[name] = revived(inner);
  }
  return result;
}

function extended(value: Document): unknown {
  const { $date: date } = value;
  if (date !== undefined) {
    const time = typeof date === "string" ? timeOfText(date) : typeof date === "number" ? date : Number((revived(date) as { toString(): string }).toString());
    if (Number.isNaN(time)) throw new Misfit(`${quoted(value)} is not a time`);
    return new Date(time);
  }
  try {
    const read = EJSON.deserialize({ value }, { relaxed: false })["value"];
    return read?._bsontype === "Double" ? read.valueOf() : read;
  } catch (error) {
    throw new Misfit(`is not Extended JSON: ${(error as Error).message}`);
  }
}

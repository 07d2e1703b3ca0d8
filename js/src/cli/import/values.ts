// Converts texts and other values to the type of their field.

import { Decimal128, EJSON, Int32, ObjectId } from "bson";
import { timeOfNumber, timeOfText, unitOf, type TimeRules } from "./times.js";

/** What `--types` takes. */
export const TYPES = ["number", "int", "long", "decimal", "date", "string", "bool", "objectId", "object", "mixed", "skip"] as const;
export type FieldType = (typeof TYPES)[number];

/** A value that does not fit the type of its field. */
export class Misfit extends Error {
  override name = "Misfit";
}

export interface ValueRules {
  times?: TimeRules | undefined;
  /** Whether `1,5` is a number. */
  hasCommas?: boolean | undefined;
}

/** The value of a cell; `undefined` for one that is empty. @throws Misfit */
export type FromText = (text: string) => unknown;

const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;
const COMMA_NUMBER = /^[-+]?\d+,\d+(?:e[-+]?\d+)?$/i;
const WHOLE = /^[-+]?\d+(?:\.0*)?$/;
const LONG_MIN = -(2n ** 63n);
const LONG_END = 2n ** 63n;
/** What programs write for a missing value. In a column of texts, these are ordinary texts. */
const NOTHING = new Set(["null", "NULL", "Null", "NA", "N/A", "n/a", "\\N", "-", "--", "None", "nil"]);
const TRUE = new Set(["true", "t", "yes", "y", "1", "on"]);
const FALSE = new Set(["false", "f", "no", "n", "0", "off"]);

/** Shows a value in a message. */
export function quoted(value: unknown): string {
  const text = typeof value === "string" ? value : typeof value === "object" && value !== null ? EJSON.stringify(value) : String(value);
  return `“${text.length > 60 ? `${text.slice(0, 60)}…` : text}”`;
}

/** Whether a text stands for a missing value, in a column of any type but text. */
export const isNothing = (text: string): boolean => text === "" || NOTHING.has(text);

/** A text that can only be a number: not the name `007`, nor `1,5` if commas separate cells. */
export function isNumberText(text: string, hasCommas: boolean): boolean {
  return (NUMBER.test(text) || (hasCommas && COMMA_NUMBER.test(text))) && !/^[-+]?0\d/.test(text);
}

/** Reads cells of a column of this type. */
export function fromText(type: FieldType, rules: ValueRules = {}): FromText {
  const read = TEXT_READERS[type];
  if (type === "string") return read as FromText;
  return (given) => {
    const text = given.trim();
    if (text === "" || (NOTHING.has(text) && type !== "mixed" && type !== "object")) return undefined;
    return read(text, rules);
  };
}

/** Converts values that are not texts, and texts among them. */
export function fromValue(type: FieldType, rules: ValueRules = {}): (value: unknown) => unknown {
  const read = fromText(type, rules);
  return (value) => {
    if (value === undefined || value === null) return value;
    if (typeof value === "string") return read(value);
    return convert(value, type, rules);
  };
}

const TEXT_READERS: Record<FieldType, (text: string, rules: ValueRules) => unknown> = {
  number: (text, { hasCommas }) => {
    const number = +text;
    // Other bases, such as 0x1f, are numbers for JavaScript only.
    if (number === number && !/^0[xob]/i.test(text)) return exact(text, number);
    if (hasCommas && COMMA_NUMBER.test(text)) return Number(text.replace(",", "."));
    if (text === "NaN" || text === "nan") return NaN;
    throw new Misfit(`${quoted(text)} is not a number`);
  },
  int: (text) => int(WHOLE.test(text) ? Number(text) : NaN, text),
  long: (text) => {
    if (!WHOLE.test(text)) throw new Misfit(`${quoted(text)} is not a whole number`);
    return long(BigInt(text.replace(/\..*$/, "").replace(/^\+/, "")), text);
  },
  decimal: (text, { hasCommas }) => decimal(hasCommas ? text.replace(",", ".") : text),
  date: (text, { times }) => {
    const time = timeOfText(text, times ?? {});
    if (time !== time) throw new Misfit(`${quoted(text)} is not a time`);
    return new Date(time);
  },
  // An empty cell counts as missing, because text does not distinguish the two.
  string: (text) => (text === "" ? undefined : text),
  bool: (text) => {
    const word = text.toLowerCase();
    if (TRUE.has(word)) return true;
    if (FALSE.has(word)) return false;
    throw new Misfit(`${quoted(text)} is neither true nor false`);
  },
  objectId: (text) => {
    if (/^[0-9a-f]{24}$/i.test(text)) return new ObjectId(text);
    throw new Misfit(`${quoted(text)} is not an ObjectId`);
  },
  object: (text) => {
    try {
      return EJSON.parse(text);
    } catch {
      throw new Misfit(`${quoted(text)} is not JSON`);
    }
  },
  mixed: (text, { hasCommas }) => {
    if (isNumberText(text, hasCommas === true)) return exact(text, Number(text.replace(",", ".")));
    return text === "true" || text === "false" ? text === "true" : text;
  },
  skip: () => undefined,
};

/** Refuses a whole number that a double cannot hold, because it would become another one. */
function exact(text: string, number: number): number {
  if (Number.isSafeInteger(number) || !/^[-+]?\d+$/.test(text) || BigInt(text.replace(/^\+/, "")) === BigInt(number)) return number;
  throw new Misfit(`${quoted(text)} has more digits than a number can hold; long and decimal can hold them`);
}

function int(number: number, shown: unknown): Int32 {
  if (!Number.isInteger(number) || number < -(2 ** 31) || number >= 2 ** 31) throw new Misfit(`${quoted(shown)} is not a whole number of 32 bits`);
  return new Int32(number);
}

function long(integer: bigint, shown: unknown): bigint {
  if (integer < LONG_MIN || integer >= LONG_END) throw new Misfit(`${quoted(shown)} is not a whole number of 64 bits`);
  return integer;
}

function decimal(text: string): Decimal128 {
  try {
    return Decimal128.fromString(text);
  } catch {
    throw new Misfit(`${quoted(text)} is not a decimal of at most 34 digits`);
  }
}

/** Converts Int32, Double, Long, numbers and bigints to `number` or `bigint`; anything else is `undefined`. */
function numeric(value: unknown): number | bigint | undefined {
  if (typeof value === "number" || typeof value === "bigint") return value;
  const type = bsonTypeOf(value);
  if (type === "Int32" || type === "Double") return Number(value);
  if (type === "Long") return (value as { toBigInt(): bigint }).toBigInt();
  return undefined;
}

/** The name of a class of the package `bson`. */
export const bsonTypeOf = (value: unknown): string | undefined => (value as { _bsontype?: string } | null | undefined)?._bsontype;

function convert(value: unknown, type: FieldType, rules: ValueRules): unknown {
  const number = numeric(value);
  const kind = bsonTypeOf(value);
  switch (type) {
    case "skip":
      return undefined;
    case "mixed":
    case "object":
      return value;
    case "string":
      return typeof value === "object" && kind === undefined && !(value instanceof Date) ? EJSON.stringify(value) : value instanceof Date ? value.toISOString() : String(value);
    case "date":
      if (value instanceof Date) return value;
      if (number !== undefined) {
        const unit = rules.times?.unit ?? unitOf([Number(number)]);
        if (unit) return new Date(timeOfNumber(number, unit));
      }
      throw new Misfit(`${quoted(value)} is not a time`);
    case "bool":
      if (typeof value === "boolean") return value;
      if (number == 0 || number == 1) return number == 1;
      throw new Misfit(`${quoted(value)} is neither true nor false`);
    case "objectId":
      if (kind === "ObjectId") return value;
      throw new Misfit(`${quoted(value)} is not an ObjectId`);
    case "decimal":
      if (kind === "Decimal128") return value;
      if (number !== undefined) return decimal(String(number));
      throw new Misfit(`${quoted(value)} is not a number`);
    default:
  }
  if (kind === "Decimal128") return fromText(type, rules)(String(value));
  if (number === undefined) throw new Misfit(`${quoted(value)} is not a number`);
  if (type === "int") return int(Number(number), value);
  if (typeof number === "bigint") return type === "long" ? number : exact(String(number), Number(number));
  if (type === "number") return number;
  if (!Number.isSafeInteger(number)) throw new Misfit(`${quoted(value)} is not a whole number`);
  return long(BigInt(number), value);
}

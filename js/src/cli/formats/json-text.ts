// Values as Extended JSON that loses nothing but the type of numbers.

import { EJSON, type Document } from "bson";
import { bsonType, isDate, isPlain } from "../../bson.js";

/** The range of dates that relaxed Extended JSON writes as text. */
const [ISO_FIRST_MS, ISO_LAST_MS] = [0, Date.UTC(9999, 11, 31, 23, 59, 59, 999)];

/**
 * A value as relaxed Extended JSON. In contrast to `EJSON.stringify`, integers that no double holds keep their digits and -0 its sign, and it takes a third of the time.
 * A date that JavaScript cannot show is an error.
 */
export function jsonText(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) return `{"$numberDouble":"${value}"}`;
      return Object.is(value, -0) ? "-0.0" : digits(value);
    case "boolean":
      return String(value);
    case "bigint":
      return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? String(value) : `{"$numberLong":"${value}"}`;
    case "object":
      return value === null ? "null" : objectText(value);
    default:
      return "null";
  }
}

/** A double. Readers take a whole number without an exponent for an integer, all of whose digits count. */
export function digits(value: number): string {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}

function objectText(value: object): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (isPlain(value)) return documentText(value);
  if (isDate(value)) return dateText(value as Date);
  switch (bsonType(value)) {
    case "Double":
    case "Int32":
      return jsonText((value as { value: number }).value);
    case "Long":
      return jsonText((value as { toBigInt(): bigint }).toBigInt());
    default:
      return EJSON.stringify(value, { relaxed: true });
  }
}

function documentText(document: Document): string {
  let text = "";
  for (const key of Object.keys(document)) {
    const value: unknown = document[key];
    if (value !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${jsonText(value)}`;
  }
  return `{${text}}`;
}

function dateText(date: Date): string {
  const ms = checkedMs(date);
  return ms >= ISO_FIRST_MS && ms <= ISO_LAST_MS ? `{"$date":"${date.toISOString()}"}` : `{"$date":{"$numberLong":"${ms}"}}`;
}

/** The milliseconds of a date that JavaScript can show. */
export function checkedMs(date: Date): number {
  const ms = date.getTime();
  if (Number.isNaN(ms)) throw new RangeError("A date lies outside of what JavaScript can show, which is 271821 BC to 275760 AD; --dump keeps it");
  return ms;
}

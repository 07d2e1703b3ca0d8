// Guesses from the first rows of a file which field is the time, which names the series, and how long buckets should be.

import { EJSON } from "bson";
import type { Span } from "../formats/model.js";
import type { FieldType } from "./values.js";
import { bsonTypeOf } from "./values.js";

/** A field of the first rows: `values` has one for each row, `undefined` where there is none. */
export interface Sampled {
  name: string;
  type: FieldType;
  values: readonly unknown[];
}

/** The roles of fields. */
export interface Roles {
  timeField?: string | undefined;
  metaField?: string | undefined;
  span?: Span | undefined;
}

export const TIME_NAME = /time|date|stamp|^(at|ts|t|when|day)$/i;
const SERIES_NAME = /station|sensor|device|^id$|_id$|name|symbol|ticker|room|host|site|series|location|city|source|tag/i;
/** Maximum number of distinct values in the first rows, if only the values suggest that they identify series. */
const SERIES_MAX = 60;
const MINUTE_MS = 60_000;
const YEAR_SECONDS = 365 * 86_400;

/** The type of values that have types already; `mixed` if they differ, or if there are none. */
export function typeOfValues(values: readonly unknown[]): FieldType {
  let found: FieldType | undefined;
  for (const value of values) {
    if (value === undefined || value === null) continue;
    const type = typeOfValue(value);
    if (found !== undefined && found !== type) return "mixed";
    found = type;
  }
  return found ?? "mixed";
}

function typeOfValue(value: unknown): FieldType {
  if (typeof value === "number") return "number";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "long";
  if (value instanceof Date) return "date";
  const types: Record<string, FieldType> = { Double: "number", Int32: "int", Long: "long", Decimal128: "decimal", ObjectId: "objectId" };
  const type = bsonTypeOf(value);
  return type === undefined ? "object" : (types[type] ?? "mixed");
}

/** Guesses the roles of fields from the first rows. Pass the roles that you know in `known`. */
export function roles(fields: readonly Sampled[], known: { timeField?: string | undefined } = {}): Roles {
  const rank = (pattern: RegExp) => (a: Sampled, b: Sampled) => Number(pattern.test(b.name)) - Number(pattern.test(a.name)) || fields.indexOf(a) - fields.indexOf(b);
  const isAlways = ({ values }: Sampled): boolean => values.every((value) => value !== undefined && value !== null);
  const times = fields.filter(({ type }) => type === "date").sort(rank(TIME_NAME));
  const time = fields.find(({ name }) => name === known.timeField) ?? times.find(isAlways) ?? times[0];
  const series = [...fields.filter((field) => field !== time), ...groups(fields)].filter(isSeries).sort(rank(SERIES_NAME))[0];
  return { timeField: time?.name, metaField: series?.name, span: time && spanOf(time.values, series?.values) };
}

/** Fields such as `station.id` and `station.site` as the field `station`. */
function groups(fields: readonly Sampled[]): Sampled[] {
  const found = new Map<string, Sampled[]>();
  for (const field of fields) {
    const dot = field.name.indexOf(".");
    if (dot <= 0) continue;
    const name = field.name.slice(0, dot);
    found.set(name, [...(found.get(name) ?? []), field]);
  }
  return [...found].map(([name, parts]) => ({ name, type: "object", values: parts[0]!.values.map((_, row) => parts.map(({ values }) => keyOf(values[row])).join("\0")) }));
}

const keyOf = (value: unknown): string => (typeof value === "object" && value !== null ? EJSON.stringify(value) : String(value));

/** Few distinct texts, or objects and numbers under a name that suggests a series. */
function isSeries({ name, type, values }: Sampled): boolean {
  const isNamed = SERIES_NAME.test(name) && !name.includes(".");
  if (name.includes(".") || !(type === "string" || (isNamed && ["object", "number", "int", "long", "objectId", "mixed"].includes(type)))) return false;
  const given = values.filter((value) => value !== undefined && value !== null);
  const different = new Set(given.map(keyOf)).size;
  if (different === 0) return false;
  return isNamed ? different <= Math.max(SERIES_MAX, given.length / 2) : different <= SERIES_MAX && different <= given.length / 2;
}

/** How long buckets should be, by the typical interval between measurements of a series. */
function spanOf(times: readonly unknown[], series: readonly unknown[] | undefined): Span | undefined {
  const steps: number[] = [];
  const before = new Map<string, number>();
  for (const [row, time] of times.entries()) {
    if (!(time instanceof Date)) continue;
    const key = keyOf(series?.[row]);
    const last = before.get(key);
    if (last !== undefined && last !== time.getTime()) steps.push(Math.abs(time.getTime() - last));
    before.set(key, time.getTime());
  }
  if (steps.length === 0) return undefined;
  const step = steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)]!;
  if (step >= 12 * 60 * MINUTE_MS) return { bucketMaxSpanSeconds: YEAR_SECONDS, bucketRoundingSeconds: YEAR_SECONDS };
  if (step >= 15 * MINUTE_MS) return { granularity: "hours" };
  return { granularity: step >= 10_000 ? "minutes" : "seconds" };
}

// Writes measurements as text: CSV, or one line of extended JSON each.

import { EJSON } from "bson";

/** A line of CSV; `fields` is the order of its cells. */
export const csvLine = (row, fields) => `${fields.map((field) => csvCell(row[field])).join(",")}\n`;
export const csvHead = (fields) => `${fields.map(csvCell).join(",")}\n`;

function csvCell(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "string" ? value : value instanceof Date ? value.toISOString() : textOf(value);
  return /[",\r\n;]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function textOf(value) {
  if (typeof value !== "object") return String(value);
  return ["Long", "Decimal128", "ObjectId"].includes(value._bsontype) ? value.toString() : EJSON.stringify(value, { relaxed: true });
}

/** A line of extended JSON, relaxed: numbers as they are, dates as `{"$date": …}`. */
export function jsonLine(row) {
  const simple = {};
  for (const [field, value] of Object.entries(row)) {
    const one = value instanceof Date ? dateOf(value) : isSimple(value) ? value : undefined;
    if (one === undefined) return `${EJSON.stringify(row, { relaxed: true })}\n`;
    simple[field] = one;
  }
  return `${JSON.stringify(simple)}\n`; // Most rows need nothing else, and this is many times as fast.
}

const isSimple = (value) => typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function dateOf(date) {
  const year = date.getUTCFullYear();
  return year >= 1970 && year <= 9999 ? { $date: date.toISOString().replace(".000Z", "Z") } : undefined;
}

// Turns numbers, dates and filters into text.

export const number = (value, digits = 0) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Three digits and a unit: 1.23 M, 456 k, 78. */
export function short(value) {
  const [divisor, unit] = value >= 1e6 ? [1e6, " M"] : value >= 1e3 ? [1e3, " k"] : [1, ""];
  return `${(value / divisor).toLocaleString("en", { maximumSignificantDigits: 3 })}${unit}`;
}

export function bytes(count) {
  if (count < 1000) return `${number(count)} B`;
  if (count < 1e6) return `${number(count / 1e3, count < 1e4 ? 1 : 0)} kB`;
  if (count < 1e9) return `${number(count / 1e6, count < 1e7 ? 1 : 0)} MB`;
  return `${number(count / 1e9, count < 1e10 ? 1 : 0)} GB`;
}

export function duration(ms) {
  if (ms < 10) return `${number(ms, 1)} ms`;
  return ms < 1000 ? `${number(ms)} ms` : `${number(ms / 1000, 2)} s`;
}

const formats = {
  minute: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" },
  second: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" },
  seconds: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  clock: { hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short" },
  month: { month: "short" },
  year: { year: "numeric" },
};
const formatters = Object.fromEntries(
  Object.entries(formats).map(([name, parts]) => [name, new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: "UTC" })]),
);

/** A moment in UTC; `precision` is a key of `formats`. */
export const moment = (time, precision = "minute") => formatters[precision].format(time);

/** The UTC day of a date, as `<input type="date">` wants it. */
export const isoDay = (date) => date.toISOString().slice(0, 10);

/** A value as JavaScript source, for the code that the page shows. */
export function toSource(value) {
  if (value instanceof Date) return `new Date("${value.toISOString().replace("T00:00:00.000Z", "")}")`;
  if (Array.isArray(value)) return `[${value.map(toSource).join(", ")}]`;
  if (typeof value !== "object" || value === null) return typeof value === "string" ? JSON.stringify(value) : String(value);
  if (value instanceof RegExp) return String(value);
  if (ArrayBuffer.isView(value)) return `[${[...value.subarray(0, 10)].join(", ")}${value.length > 10 ? `, … ${number(value.length - 10)} more` : ""}]`;
  if (value._bsontype) return bsonSource(value);
  const entries = Object.entries(value).map(([key, inner]) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}: ${toSource(inner)}`);
  return entries.length > 0 ? `{ ${entries.join(", ")} }` : "{}";
}

/** Values of BSON as source, with the names of the shell. */
function bsonSource(value) {
  const type = value._bsontype;
  if (type === "Binary") return `Binary(${number(value.length())} bytes${value.sub_type === 7 ? ", a compressed column" : ""})`;
  if (type === "Int32" || type === "Double") return String(value);
  return ["ObjectId", "Long", "Decimal128"].includes(type) ? `${type}("${value.toString()}")` : JSON.stringify(value);
}

/** The same, over several lines if one line would be longer than `width`. */
export function toLines(value, indent = "", width = 96) {
  const line = toSource(value);
  if (indent.length + line.length <= width || !isNested(value)) return line;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const lines = [];
  for (const [key, one] of Object.entries(value)) {
    const part = `${Array.isArray(value) ? "" : `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}: `}${toLines(one, inner, width)},`;
    const before = lines.at(-1);
    // Short fields share a line.
    if (before && !Array.isArray(value) && Math.max(before.length, part.length) <= width * 0.7 && inner.length + before.length + part.length < width && !`${before}${part}`.includes("\n")) {
      lines[lines.length - 1] = `${before} ${part}`;
    } else lines.push(part);
  }
  return `${open}\n${lines.map((part) => `${inner}${part}\n`).join("")}${indent}${close}`;
}

const isNested = (value) => Array.isArray(value) || (Object(value) === value && Object.getPrototypeOf(value) === Object.prototype);

const TOKENS = /("[^"]*")|\b(import|from|const|await|new)\b|(\$\w+)|(\.\w+(?=\())/g;
const KINDS = ["string", "keyword", "operator", "call"];

/** Shows source text in an element, with a little colour. */
export function showCode(element, source) {
  element.replaceChildren();
  let end = 0;
  for (const match of source.matchAll(TOKENS)) {
    const token = document.createElement("span");
    token.className = KINDS[match.slice(1).findIndex(Boolean)];
    token.textContent = match[0];
    element.append(source.slice(end, match.index), token);
    end = match.index + match[0].length;
  }
  element.append(source.slice(end));
}

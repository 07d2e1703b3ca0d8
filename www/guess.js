// Guesses the columns of a file from its first records: their types, which one is the time, and which one names the series.

const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const COMMA_NUMBER = /^[-+]?\d+,\d+$/;
const ISO = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;
const DOTTED = /^(\d\d?)\.(\d\d?)\.(\d{4})(?:,?\s+(\d\d?):(\d\d)(?::(\d\d))?)?$/;
const WRITTEN = /^\d{1,4}[-/]\d\d?[-/]\d{1,4}(?!\d)|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d{4}/i;
const ZONED = /(?:\b|\d)(?:Z|UTC|GMT)$|:\d\d(?:\.\d+)?\s*[+-]\d\d:?\d\d$/i;
const TIME_NAME = /time|date|stamp|^(at|ts|t|when|day)$/i;
const SERIES_NAME = /station|sensor|device|^id$|_id$|name|symbol|ticker|room|host|site|series|location|city|source|tag/i;
const SERIES_MAX = 60;
/** Numbers of this size are seconds, milliseconds, microseconds or nanoseconds since 1970. */
const UNITS = [[1e8, 1e10, 1000], [1e11, 1e13, 1], [1e14, 1e16, 1e-3], [1e17, 1e19, 1e-6]];
const HOUR_MS = 3_600_000;

/** Milliseconds since 1970, or NaN. A text without a zone is taken as UTC. */
export function timeOf(value) {
  if (value instanceof Date) return value.getTime();
  if (typeof value === "number") {
    const unit = UNITS.find(([from, to]) => value >= from && value < to);
    return unit ? Math.round(value * unit[2]) : Number.NaN;
  }
  if (typeof value !== "string") return Number.NaN;
  const text = value.trim();
  if (ISO.test(text)) return Date.parse(text.length > 10 ? `${text.replace(" ", "T").replace(",", ".")}Z` : text);
  if (NUMBER.test(text)) return timeOf(Number(text));
  const [, day, month, year, hour = 0, minute = 0, second = 0] = DOTTED.exec(text) ?? [];
  if (day) return month > 12 || day > 31 ? Number.NaN : Date.UTC(year, month - 1, day, hour, minute, second);
  if (!WRITTEN.test(text)) return Number.NaN; // Browsers take “web-7” for July.
  return Date.parse(ZONED.test(text) ? text : `${text} UTC`);
}

/** The value that a cell of text stands for; `undefined` if it is empty. */
export function valueOf(cell) {
  if (typeof cell !== "string") return cell ?? undefined;
  const text = cell.trim();
  if (text === "") return undefined;
  if (isNumber(text)) return Number(text.replace(",", "."));
  return text === "true" || text === "false" ? text === "true" : text;
}

const isNumber = (text) => (NUMBER.test(text) || COMMA_NUMBER.test(text)) && !/^[-+]?0\d/.test(text);

/** `{ types, timeField, metaField, granularity }` for columns `names` and their first records. */
export function guess(names, records) {
  const columns = names.map((_, place) => records.map(({ cells }) => cells[place]).filter((cell) => valueOf(cell) !== undefined));
  const types = columns.map(typeOf);
  const byName = (pattern) => (a, b) => Number(pattern.test(names[b])) - Number(pattern.test(names[a])) || a - b;
  const places = names.map((_, place) => place);
  const time = places.filter((place) => isTime(columns[place], types[place], names[place])).sort(byName(TIME_NAME))[0];
  const series = places.filter((place) => place !== time && isSeries(columns[place], types[place], names[place])).sort(byName(SERIES_NAME))[0];
  return { types, timeField: names[time], metaField: names[series], timeseries: spanOf(records, time, series) };
}

function typeOf(cells) {
  const kinds = new Set(cells.map((cell) => kindOf(valueOf(cell))));
  if (kinds.size === 0) return "empty";
  return kinds.size === 1 ? [...kinds][0] : "mixed";
}

function kindOf(value) {
  if (typeof value === "string") return Number.isNaN(timeOf(value)) ? "text" : "time";
  if (value instanceof Date) return "time";
  return typeof value === "object" ? "document" : typeof value;
}

function isTime(cells, type, name) {
  return (type === "time" || (type === "number" && TIME_NAME.test(name))) && cells.every((cell) => !Number.isNaN(timeOf(cell)));
}

/** True for a column with few distinct texts, or with numbers and a name of a series. */
function isSeries(cells, type, name) {
  if (type !== "text" && !(type === "number" && SERIES_NAME.test(name))) return false;
  const different = new Set(cells).size;
  return different <= SERIES_MAX && (different <= cells.length / 2 || SERIES_NAME.test(name));
}

/** The span of buckets that fits the usual distance between measurements. */
function spanOf(records, time, series) {
  if (time === undefined) return {};
  const steps = [];
  const before = new Map();
  for (const { cells } of records) {
    const at = timeOf(cells[time]);
    const key = String(cells[series]);
    if (before.has(key)) steps.push(Math.abs(at - before.get(key)));
    before.set(key, at);
  }
  const step = steps.filter((ms) => ms > 0).sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  if (step >= 12 * HOUR_MS) return { bucketMaxSpanSeconds: 365 * 86_400, bucketRoundingSeconds: 365 * 86_400 };
  if (step >= HOUR_MS / 4) return { granularity: "hours" };
  return { granularity: step >= 10_000 ? "minutes" : "seconds" };
}

// Reads the times of files: texts in several forms, and numbers in several units.

export type TimeUnit = "s" | "ms" | "us" | "ns";
/** Whether the day or the month comes first in `3/4/2025`. */
export type DateOrder = "dmy" | "mdy";

/** How times are read. */
export interface TimeRules {
  /** The unit of numbers, which count from 1970. */
  unit?: TimeUnit | undefined;
  order?: DateOrder | undefined;
  /** The time zone of texts without one. Default: UTC. */
  zone?: Zone | undefined;
}

/** Milliseconds in a unit, and the range of numbers for which the unit is assumed if none is given: times from 1973 to 2286. */
const UNITS: Record<TimeUnit, [ms: number, from: number, to: number]> = {
  s: [1000, 1e8, 1e10],
  ms: [1, 1e11, 1e13],
  us: [1e-3, 1e14, 1e16],
  ns: [1e-6, 1e17, 1e19],
};
export const UNIT_NAMES: Record<TimeUnit, string> = { s: "seconds", ms: "milliseconds", us: "microseconds", ns: "nanoseconds" };

const INTEGER = /^[-+]?\d+(?:\.\d*)?$/;
const YEAR_FIRST = /^(\d{4})([-/.])(\d\d?)\2(\d\d?)(?:(?:T|,?\s+)(.*))?$/i;
const YEAR_LAST = /^(\d\d?)([-/.])(\d\d?)\2(\d{4})(?:(?:T|,?\s+)(.*))?$/i;
const OF_DAY = /^(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*([AP]M)?\s*(Z|UTC|GMT|[-+]\d\d(?::?\d\d)?)?$/i;
/** Times with the name of a month, such as those of mails. */
const WRITTEN = /\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d{4}|\b\d{1,2}\b.*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d{4}/i;
const ZONED = /(?:Z|UTC|GMT|[-+]\d\d:?\d\d)(?:\s*\([^)]*\))?$/i;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Milliseconds since 1970 that a text means, or NaN. Parts of milliseconds are cut off. */
export function timeOfText(given: string, rules: TimeRules = {}): number {
  const quick = isoTime(given);
  if (quick === quick) return quick;
  const text = given.trim();
  if (INTEGER.test(text)) return rules.unit ? timeOfNumber(text, rules.unit) : NaN;
  const [, year, , month, day, rest] = YEAR_FIRST.exec(text) ?? [];
  if (year !== undefined) return timeOfParts(+year, +month!, +day!, rest, rules);
  const [, first, mark, second, lastYear, lastRest] = YEAR_LAST.exec(text) ?? [];
  if (first !== undefined) {
    const order = mark === "." ? "dmy" : rules.order;
    if (order === undefined) return NaN;
    return order === "dmy" ? timeOfParts(+lastYear!, +second!, +first, lastRest, rules) : timeOfParts(+lastYear!, +first, +second!, lastRest, rules);
  }
  if (!WRITTEN.test(text)) return NaN;
  if (ZONED.test(text)) return Date.parse(text);
  const wall = Date.parse(`${text} UTC`);
  return rules.zone ? rules.zone.utc(wall) : wall;
}

/** Milliseconds since 1970. Nanoseconds need more digits than a double holds, so as text their last six digits are cut off. */
export function timeOfNumber(value: number | bigint | string, unit: TimeUnit): number {
  if (unit === "ns" && typeof value !== "number") {
    const ns = BigInt(String(value).replace(/\..*|^\+/g, ""));
    return Number((ns < 0n ? ns - 999_999n : ns) / 1_000_000n);
  }
  return Math.floor(Number(value) * UNITS[unit][0]);
}

/** The unit of numeric times, if the magnitude of all of them implies the same one; otherwise `undefined`. */
export function unitOf(values: Iterable<number>): TimeUnit | undefined {
  let found: TimeUnit | undefined;
  for (const value of values) {
    const unit = (Object.keys(UNITS) as TimeUnit[]).find((name) => value >= UNITS[name][1] && value < UNITS[name][2]);
    if (unit === undefined || (found !== undefined && found !== unit)) return undefined;
    found = unit;
  }
  return found;
}

/** Whether the day comes first in dates such as `31/12/2024`; `undefined` if no date decides, or if two contradict each other. */
export function orderOf(texts: Iterable<string>): DateOrder | undefined {
  let found: DateOrder | undefined;
  for (const text of texts) {
    const [, first, mark, second] = YEAR_LAST.exec(text.trim()) ?? [];
    if (first === undefined || mark === ".") continue;
    const order = +first > 12 ? "dmy" : +second! > 12 ? "mdy" : undefined;
    if (order === undefined) continue;
    if (found !== undefined && found !== order) return undefined;
    found = order;
  }
  return found;
}

/** `2025-03-01T00:00:00.000Z` and its shorter forms with a Z: nearly all times of large files. NaN for any other text. */
function isoTime(text: string): number {
  const length = text.length;
  if (length < 20 || length > 30 || text.charCodeAt(length - 1) !== 90) return NaN;
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45 || text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return NaN;
  const separator = text.charCodeAt(10);
  if ((separator !== 84 && separator !== 32) || (length > 20 && text.charCodeAt(19) !== 46)) return NaN;
  let fraction = 0;
  for (let at = 20, worth = 100; at < length - 1; at++, worth /= 10) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return NaN;
    if (worth >= 1) fraction += digit * worth;
  }
  const year = two(text, 0) * 100 + two(text, 2);
  return utc(year, two(text, 5), two(text, 8), two(text, 11), two(text, 14), two(text, 17)) + fraction;
}

function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : NaN;
}

function timeOfParts(year: number, month: number, day: number, rest: string | undefined, rules: TimeRules): number {
  let wall = utc(year, month, day, 0, 0, 0);
  let zone: string | undefined;
  if (rest !== undefined && rest !== "") {
    const [, hour, minute, second = "0", fraction = "", half, given] = OF_DAY.exec(rest.trim()) ?? [];
    if (hour === undefined) return NaN;
    if (half !== undefined && (+hour < 1 || +hour > 12)) return NaN;
    const hours = half === undefined ? +hour : (+hour % 12) + (half.toUpperCase() === "PM" ? 12 : 0);
    wall = utc(year, month, day, hours, +minute!, +second) + Number(fraction.slice(0, 3).padEnd(3, "0"));
    zone = given;
  }
  if (zone === undefined) return rules.zone ? rules.zone.utc(wall) : wall;
  if (!/^[-+]/.test(zone)) return wall;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.replace(":", "").slice(3) || 0);
  return zone[0] === "+" ? wall - minutes * MINUTE_MS : wall + minutes * MINUTE_MS;
}

/** Like `Date.UTC`, but NaN for invalid dates and times. 24:00:00 is the end of a day, and second 60 is a leap second. */
function utc(year: number, month: number, day: number, hour: number, minute: number, second: number): number {
  if (!(month >= 1 && month <= 12 && day >= 1 && hour <= 24 && minute <= 59 && second <= 60)) return NaN;
  if (hour === 24 && (minute > 0 || second > 0)) return NaN;
  if (day > 28 && day > new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()) return NaN;
  // Date.UTC takes years below 100 as years of the 20th century.
  return year < 100 ? new Date(Date.UTC(2000, month - 1, day, hour, minute, second)).setUTCFullYear(year) : Date.UTC(year, month - 1, day, hour, minute, second);
}

/** A time zone by its name, such as `Europe/Berlin`. */
export class Zone {
  readonly #format: Intl.DateTimeFormat;
  /** Cached offsets of days on which the offset does not change. */
  readonly #offsets = new Map<number, number>();

  /** @throws RangeError for a name that the runtime does not know */
  constructor(name: string) {
    const numeric = "numeric";
    this.#format = new Intl.DateTimeFormat("en-US", { timeZone: name, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23", era: "short", year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric });
  }

  /**
   * The time at which clocks of the zone show `wall`, which is given as if it were UTC. If there are two such times, it is the first. In an hour that clocks skip, the
   * earlier offset applies.
   */
  utc(wall: number): number {
    if (wall !== wall) return wall;
    const day = Math.floor(wall / DAY_MS);
    const known = this.#offsets.get(day);
    if (known !== undefined) return wall - known;
    // No zone is more than a day away from UTC.
    const before = this.#offset((day - 1) * DAY_MS);
    const after = this.#offset((day + 2) * DAY_MS);
    if (before === after) {
      this.#offsets.set(day, before);
      return wall - before;
    }
    const early = wall - before;
    return this.#offset(early) === before || this.#offset(wall - after) !== after ? early : wall - after;
  }

  /** Milliseconds by which clocks of the zone are ahead of UTC. */
  #offset(time: number): number {
    const parts: Record<string, string> = {};
    for (const { type, value } of this.#format.formatToParts(time)) parts[type] = value;
    const { year, month, day, hour, minute, second, era } = parts;
    const shown = utc(era?.startsWith("B") ? 1 - Number(year) : Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second));
    return shown - Math.floor(time / 1000) * 1000;
  }
}

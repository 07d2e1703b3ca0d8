// Reads the arguments of `timepail import`.

import { statSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { Usage } from "../command.js";
import { READERS, bareName, hasKnownEnding } from "../formats/readers.js";
import { Zone, type DateOrder, type TimeUnit } from "./times.js";
import { TYPES, type FieldType } from "./values.js";

export interface ImportOptions {
  file: string;
  database: string | undefined;
  /** The collection; `undefined` if inputs name it. */
  collection: string | undefined;
  inputs: string[];
  format: string | undefined;
  timeField: string | undefined;
  metaField: string | undefined;
  /** Fields that become one document of metadata. */
  meta: string[];
  granularity: "seconds" | "minutes" | "hours" | undefined;
  expireAfterSeconds: number | undefined;
  dedupe: { by?: string[]; keep?: "first" | "last" } | undefined;
  types: Map<string, FieldType>;
  renames: Map<string, string>;
  names: string[] | undefined;
  delimiter: string | undefined;
  encoding: string | undefined;
  isFlat: boolean;
  timeUnit: TimeUnit | undefined;
  zone: Zone | undefined;
  order: DateOrder | undefined;
  isStrict: boolean;
  isDryRun: boolean;
  isQuiet: boolean;
  isProgress: boolean;
}

const SECONDS: Record<string, number> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 };
const DELIMITERS: Record<string, string> = { tab: "\t", "\\t": "\t", comma: ",", semicolon: ";", bar: "|", pipe: "|", space: " " };
const text = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;

export function importOptions(args: string[]): ImportOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      database: text, collection: text, format: text, "time-field": text, "meta-field": text, meta: text, granularity: text, "expire-after": text,
      dedupe: flag, "dedupe-by": text, "dedupe-keep": text, types: { type: "string", multiple: true }, rename: { type: "string", multiple: true }, names: text,
      delimiter: text, encoding: text, flat: flag, "time-unit": text, timezone: text, "date-order": text,
      strict: flag, "dry-run": flag, quiet: flag, progress: flag,
    },
  });
  const [file, ...rest] = positionals;
  if (file === undefined) throw new Usage("Missing argument: file");
  const hasName = values.collection === undefined && rest.length > 1 && !isInput(rest[0]!);
  const inputs = hasName ? rest.slice(1) : rest;
  if (inputs.length === 0) throw new Usage("Missing argument: input");
  const keep = oneOf("--dedupe-keep", values["dedupe-keep"], ["first", "last"]);
  const by = list(values["dedupe-by"]);
  const isDeduped = values.dedupe || by.length > 0 || keep !== undefined;
  const meta = list(values.meta);
  if (meta.length > 0 && values["meta-field"] === undefined) throw new Usage("--meta requires --meta-field, the name of the document");
  return {
    file,
    database: values.database,
    collection: values.collection ?? (hasName ? rest[0] : undefined),
    inputs,
    format: oneOf("--format", values.format, READERS.map(({ name }) => name)),
    timeField: values["time-field"],
    metaField: values["meta-field"],
    meta,
    granularity: oneOf("--granularity", values.granularity, ["seconds", "minutes", "hours"]),
    expireAfterSeconds: values["expire-after"] === undefined ? undefined : seconds(values["expire-after"]),
    dedupe: isDeduped ? { ...(by.length > 0 && { by }), ...(keep && { keep }) } : undefined,
    types: new Map(pairs("--types", values.types).map(([name, type]) => [name, oneOf(`--types ${name}`, type, TYPES)!])),
    renames: new Map(pairs("--rename", values.rename)),
    names: values.names === undefined ? undefined : list(values.names),
    delimiter: values.delimiter === undefined ? undefined : delimiter(values.delimiter),
    encoding: values.encoding === undefined ? undefined : known("--encoding", values.encoding, (name) => new TextDecoder(name).encoding),
    isFlat: values.flat,
    timeUnit: oneOf("--time-unit", values["time-unit"], ["s", "ms", "us", "ns"]),
    zone: values.timezone === undefined ? undefined : known("--timezone", values.timezone, (name) => new Zone(name)),
    order: oneOf("--date-order", values["date-order"], ["dmy", "mdy"]),
    isStrict: values.strict,
    isDryRun: values["dry-run"],
    isQuiet: values.quiet,
    isProgress: values.progress,
  };
}

/** Whether an argument after the database file is an input, and not the name of a collection. */
const isInput = (argument: string): boolean => argument === "-" || hasKnownEnding(argument) || statSync(argument, { throwIfNoEntry: false }) !== undefined;

/** The collection of an input that no other argument names: `My stations.csv.gz` is `My_stations`. */
export function collectionOf(input: string): string {
  if (input === "-") throw new Usage("Missing argument: collection; standard input has no name");
  const name = bareName(basename(input)).replace(/(?<=.)\.[^.]*$/, "").replace(/^system\.buckets\./, "");
  return name.replace(/[^\p{L}\p{N}_.-]+/gu, "_") || "imported";
}

const list = (value: string | undefined): string[] => (value ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");

function pairs(option: string, values: string[] | undefined): [string, string][] {
  return (values ?? []).flatMap(list).map((pair) => {
    const at = pair.lastIndexOf("=");
    if (at <= 0 || at === pair.length - 1) throw new Usage(`${option} takes name=value, not ${pair}`);
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
}

function oneOf<T extends string>(option: string, value: string | undefined, allowed: readonly T[]): T | undefined {
  if (value === undefined || (allowed as readonly string[]).includes(value)) return value as T | undefined;
  throw new Usage(`${option} is one of ${allowed.join(", ")}, not ${value}`);
}

function known<T>(option: string, value: string, read: (value: string) => T): T {
  try {
    return read(value);
  } catch {
    throw new Usage(`${option}: unknown value ${value}`);
  }
}

function seconds(value: string): number {
  const [, number, unit] = /^(\d+)([smhdwy]?)$/.exec(value) ?? [];
  if (number === undefined) throw new Usage(`--expire-after is a time such as 30d, 12h or 3600, not ${value}`);
  return Number(number) * SECONDS[unit!]!;
}

function delimiter(value: string): string {
  const found = DELIMITERS[value] ?? value;
  if (found.length !== 1 || /["\r\n]/.test(found)) throw new Usage(`--delimiter is one character, or tab, not ${value}`);
  return found;
}

// Plans which collection receives the rows of a file, and how its fields are converted: by the options, by the collection if it exists, or else by guesses.

import type { Database } from "../../index.js";
import { Usage } from "../command.js";
import type { FieldGuess, OpenedFile, Span } from "../formats/model.js";
import { table } from "../stats.js";
import type { ImportOptions } from "./options.js";
import { conflict, type Shape } from "./shape.js";
import { fromValue, type FieldType } from "./values.js";

/** The options of a collection, as `createCollection` takes them. */
export interface CollectionPlan {
  timeseries: { timeField: string; metaField?: string } & Partial<Span>;
  expireAfterSeconds?: number;
  dedupe?: { by?: string[]; keep?: "first" | "last" };
  maxBytes?: number;
}

export interface ImportPlan {
  name: string;
  /** How to create the collection; `undefined` if it exists. */
  create: CollectionPlan | undefined;
  shape: Shape;
  /** What is shown before the import. */
  text: string;
}

/** The time-series collection of this name, if there is one. */
export async function existingCollection(db: Database, name: string): Promise<CollectionPlan | undefined> {
  const [found] = await db.listCollections({ name }).toArray();
  if (!found) return undefined;
  if (found.type !== "timeseries") throw new Error(`${name} is not a time-series collection`);
  return found.options as unknown as CollectionPlan;
}

/** The name in the file of a field that is stored as `field`. */
export function nameInFile(field: string | undefined, { renames }: ImportOptions): string | undefined {
  if (field === undefined) return undefined;
  return [...renames].find(([, to]) => to === field)?.[0] ?? field;
}

/** Plans the import of an opened file. @throws Usage if an option does not fit the file or the collection */
export function planOf(name: string, existing: CollectionPlan | undefined, opened: OpenedFile, options: ImportOptions): ImportPlan {
  const guessed = (field: string | undefined): string | undefined => (field === undefined ? undefined : (options.renames.get(field) ?? field));
  const timeField = existing?.timeseries.timeField ?? options.timeField ?? guessed(opened.timeField);
  const metaField = existing ? existing.timeseries.metaField : (options.metaField ?? guessed(opened.metaField));
  if (existing) agree(name, existing, options);
  const fields = opened.fields;
  if (timeField === undefined) throw new Usage(`No field of ${fieldsText(fields)} is recognised as a time: --time-field chooses a field, and --types name=date or --date-order determine how it is read`);
  const names = storedNames(fields, metaField, options);
  const stored = fields.filter(({ type }) => type !== "skip").map((field) => names.get(field.name) ?? field.name);
  const top = (path: string): string => (options.isFlat ? path : path.split(".")[0]!);
  if (!stored.includes(timeField)) throw new Usage(`There is no field ${timeField} for the time among ${fieldsText(fields)}: --rename <field>=${timeField}, or --time-field`);
  if (!existing && options.metaField !== undefined && !stored.some((path) => top(path) === metaField)) throw new Usage(`There is no field ${metaField} for the metadata among ${fieldsText(fields)}`);
  if (metaField === timeField) throw new Usage("The time and the metadata cannot be one field");
  const wrong = options.isFlat ? undefined : conflict(stored);
  if (wrong) throw new Usage(`These fields cannot be in one document: ${wrong}. --rename gives one another name${wrong.includes("cannot be") ? ", and --flat keeps the dots" : ""}`);
  const missing = metaField === undefined || stored.some((path) => top(path) === metaField) ? "" : ` No field is its metadata, ${metaField}.`;
  const create = existing ? undefined : creation(timeField, metaField, opened, options);
  const rows = fields.map(({ name: field, type, sample, note }) => {
    const path = names.get(field) ?? field;
    const role = path === timeField ? "time" : top(path) === metaField ? "metadata" : "";
    return { field, type, sample: short(sample), "": [role, note, path !== field && `as ${path}`].filter(Boolean).join(", ") };
  });
  return { name, create, shape: { names, converters: convertersOf(fields, timeField, opened, names, options), isFlat: options.isFlat }, text: `${table(rows)}${headline(name, create)}${missing}\n` };
}

/** The names under which fields are stored, if they differ from those in the file. */
function storedNames(fields: readonly FieldGuess[], metaField: string | undefined, { renames, meta, types }: ImportOptions): Map<string, string> {
  const unknown = [...renames.keys(), ...types.keys(), ...meta].find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw new Usage(`There is no field ${unknown} among ${fieldsText(fields)}`);
  return new Map([...renames, ...meta.map((name) => [name, `${metaField}.${renames.get(name) ?? name}`] as const)]);
}

function convertersOf(fields: readonly FieldGuess[], timeField: string, { isTyped }: OpenedFile, names: Map<string, string>, { types, timeUnit, zone, order }: ImportOptions): Shape["converters"] {
  const converters = new Map<string, (value: unknown) => unknown>();
  if (isTyped) return converters;
  for (const { name, type: found, from } of fields) {
    const isTime = (names.get(name) ?? name) === timeField && (found !== "date" || from !== undefined);
    const type: FieldType | undefined = types.get(name) ?? (isTime ? "date" : undefined);
    const unit = timeUnit ?? (from === "text" ? undefined : from);
    if (type) converters.set(name, fromValue(type, { times: { unit, zone, order } }));
  }
  return converters;
}

function creation(timeField: string, metaField: string | undefined, opened: OpenedFile, { granularity, expireAfterSeconds, dedupe }: ImportOptions): CollectionPlan {
  return {
    timeseries: { timeField, ...(metaField !== undefined && { metaField }), ...(granularity ? { granularity } : opened.span) },
    ...(expireAfterSeconds !== undefined && { expireAfterSeconds }),
    ...(dedupe && { dedupe }),
  };
}

/** Checks that the given options agree with those of an existing collection. */
function agree(name: string, { timeseries, expireAfterSeconds, dedupe }: CollectionPlan, options: ImportOptions): void {
  const check = (what: string, wanted: unknown, found: unknown, hint = ""): void => {
    if (wanted !== undefined && String(wanted) !== String(found)) throw new Usage(`${name} exists, and its ${what} is ${found ?? "not set"}, not ${wanted}${hint}`);
  };
  const rename = (wanted: string | undefined, found: string | undefined): string => (wanted && found ? `: --rename ${wanted}=${found} stores the field under that name` : "");
  check("time field", options.timeField, timeseries.timeField, rename(options.timeField, timeseries.timeField));
  check("metadata field", options.metaField, timeseries.metaField, rename(options.metaField, timeseries.metaField));
  check("granularity", options.granularity, (timeseries as { granularity?: string }).granularity);
  check("expiry in seconds", options.expireAfterSeconds, expireAfterSeconds);
  if (options.dedupe && !dedupe) throw new Usage(`${name} exists without dedupe; the command collMod turns it on`);
  check("dedupe", options.dedupe?.by?.join(","), dedupe?.by?.join(","));
  check("dedupe", options.dedupe?.keep, dedupe?.keep);
}

function headline(name: string, create: CollectionPlan | undefined): string {
  if (!create) return `Into the collection ${name}, which exists.`;
  const { timeseries, expireAfterSeconds, dedupe } = create;
  const { timeField, metaField, granularity, bucketMaxSpanSeconds } = timeseries as { timeField: string; metaField?: string; granularity?: string; bucketMaxSpanSeconds?: number };
  const parts = [
    `time in ${timeField}`,
    metaField === undefined ? "one series" : `metadata in ${metaField}`,
    bucketMaxSpanSeconds === undefined ? `granularity ${granularity ?? "seconds"}` : `buckets of ${Math.round(bucketMaxSpanSeconds / 86_400)} days`,
    expireAfterSeconds !== undefined && `measurements expire after ${expireAfterSeconds.toLocaleString("en-US")} seconds`,
    dedupe && `each measurement once${dedupe.by ? `, distinguished by ${dedupe.by.join(", ")} too` : ""}`,
  ];
  return `New collection ${name}: ${parts.filter(Boolean).join("; ")}.`;
}

const fieldsText = (fields: readonly FieldGuess[]): string => fields.map(({ name }) => name).join(", ");
const short = (text: string): string => {
  const line = text.replace(/\s+/g, " ");
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
};

// `timepail export`: measurements or buckets as files.

import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { EJSON, type Document } from "bson";
import type { Database } from "../index.js";
import { Usage, existing, positional, type CliCommand } from "./command.js";
import { dump } from "./export/dump.js";
import { fieldsOfCollection, fieldsOfRows } from "./export/fields.js";
import { checkTarget, gzipped, interruptible, writeFileWhole, writeToStdout } from "./export/sink.js";
import type { Cursor, FileFormat } from "./formats/model.js";
import { WRITERS } from "./formats/writers.js";
import { openExisting } from "./place.js";
import { Progress } from "./progress.js";

const help = `
Writes measurements to a file, or to standard output if the output is missing or -. Measurements are sorted by time. The extension chooses the format:
${WRITERS.flatMap(({ endings }) => endings).join(", ")}, each also with .gz.
A file gets its name when it is complete; a failed or interrupted export leaves no file.

  timepail export plant.db weather weather.csv
  timepail export plant.db weather weather.bson.gz --query '{ "station": 7 }'
  timepail export plant.db weather --format csv --fields at,station.id,temp | head
  timepail export plant.db weather --query '{ "at": { "$gte": { "$date": "2025-06-01T00:00:00Z" } } }' june.ndjson
  timepail export plant.db weather daily.csv --pipeline '[{ "$group": { "_id": "$station", "mean": { "$avg": "$temp" } } }]'
  timepail export plant.db --dump backup --gzip

Selection:
  --query <json>      only measurements that match a filter, in Extended JSON
  --pipeline <json>   the results of a pipeline instead of measurements
  --sort <json>       sort order, such as '{ "at": -1 }'; '{}' keeps the order of storage, which is fastest
  --limit <n>         at most n results
  --fields <a,b.c>    only these fields, in this order
  --database <name>   another database of the file, as created by clients of timepail serve

Output:
  --format <name>     ${WRITERS.map(({ name }) => name).join(", ")} (default for standard output: ndjson)
  --gzip              compress the output
  --canonical         write the type of each number; only for ndjson and json
  --force             overwrite the output if it exists
  --quiet             print nothing on standard error

Dumps:
  --dump <folder>     write the buckets of all collections, or of one, in the format of mongodump; mongorestore and timepail import can read it
`;

export const exportCommand: CliCommand = { usage: "export <file> <collection> [output] [options]", summary: "export to CSV, JSON, BSON, Arrow or Parquet, or as a dump", help, run };

const OPTIONS = {
  query: { type: "string" },
  pipeline: { type: "string" },
  fields: { type: "string" },
  sort: { type: "string" },
  limit: { type: "string" },
  format: { type: "string" },
  canonical: { type: "boolean", default: false },
  gzip: { type: "boolean", default: false },
  force: { type: "boolean", default: false },
  quiet: { type: "boolean", default: false },
  dump: { type: "string" },
  database: { type: "string" },
} as const;

type Values = ReturnType<typeof parsed>["values"];

/** Rows per batch. Larger batches take more memory, and are slower because their documents outlive the young generation of the heap. */
export const ROWS_A_BATCH = 4096;

const parsed = (args: string[]) => parseArgs({ args, allowPositionals: true, options: OPTIONS });

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parsed(args);
  return values.dump === undefined ? exportRows(values, positionals) : exportBuckets(values, positionals, values.dump);
}

async function exportBuckets(values: Values, positionals: string[], folder: string): Promise<number> {
  const [file, name, more] = positionals;
  if (file === undefined) throw new Usage("Missing argument: file");
  if (more !== undefined) throw new Usage(`Unexpected argument ${more}`);
  for (const option of ["query", "pipeline", "fields", "sort", "limit", "format"] as const) {
    if (values[option] !== undefined) throw new Usage(`--dump writes whole buckets, so --${option} is not allowed`);
  }
  existing(file);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false) throw new Error(`${folder} is not a folder`);
  return interruptible(async (signal) => {
    await using db = await openExisting(file, values.database);
    const collections = name === undefined ? await timeSeries(db) : [await collectionOf(db, file, name)];
    const progress = new Progress({ noun: "bucket", isQuiet: values.quiet });
    let buckets = 0;
    const wrote = (count: number, all: number): void => progress.update((buckets += count), Math.min(buckets / all, 1));
    try {
      await dump(db, collections, { file, folder, gzip: values.gzip, force: values.force, signal, wrote });
    } finally {
      progress.clear();
    }
    progress.end(buckets, `of ${collections.length} ${collections.length === 1 ? "collection" : "collections"} written to ${folder}`);
    return 0;
  });
}

async function exportRows(values: Values, positionals: string[]): Promise<number> {
  const [file, name] = positional(positionals.slice(0, 2), "file", "collection") as [string, string];
  const [output = "-", more] = positionals.slice(2);
  if (more !== undefined) throw new Usage(`Unexpected argument ${more}`);
  const path = output === "-" ? undefined : output;
  const format = formatOf(values.format, path);
  const wanted = askedFor(values);
  existing(file);
  if (path !== undefined) checkTarget(path, values.force, file);
  else if (format.isBinary && process.stdout.isTTY) throw new Usage(`A terminal cannot show ${format.name}; name an output`);
  return interruptible(async (signal) => {
    await using db = await openExisting(file, values.database);
    const listed = await collectionOf(db, file, name);
    const { timeField, metaField } = listed["options"].timeseries as { timeField: string; metaField?: string };
    const collection = db.collection(name);
    const keepsTypes = format.keepsTypes === true || values.canonical;
    const read = { signal, bsonRegExp: true, promoteValues: !keepsTypes };
    const cursor = (isCount: boolean): Cursor => {
      const { filter, pipeline, fields, limit } = wanted;
      // The order decides which rows a limit takes. It does not matter for the fields of all rows.
      const sort = isCount && limit === 0 ? undefined : (wanted.sort ?? (pipeline ? undefined : { [timeField]: 1 }));
      if (pipeline) return collection.aggregate([...pipeline, ...(isGiven(sort) ? [{ $sort: sort }] : []), ...(limit > 0 ? [{ $limit: limit }] : []), ...(fields ? [{ $project: projection(fields) }] : [])], { ...read, batchSize: ROWS_A_BATCH });
      const find = collection.find(filter ?? {}, { ...read, batchSize: ROWS_A_BATCH });
      if (isGiven(sort)) find.sort(sort);
      if (limit > 0) find.limit(limit);
      if (fields) find.project(projection(fields));
      return find;
    };
    const progress = new Progress({ noun: "row", isQuiet: values.quiet });
    let rows = 0;
    try {
      let { fields } = wanted;
      const isAll = !wanted.filter && !wanted.pipeline && wanted.limit === 0;
      // The summaries of buckets have the total. Counting the rows of a filter would take as long as the export.
      const all = isAll ? await collection.countDocuments({}, { signal }) : undefined;
      if (format.needsFields && !fields) {
        fields = isAll ? await fieldsOfCollection(db, name, timeField, metaField, signal) : await fieldsOfRows(cursor(true));
      }
      const { canonical } = values;
      const bytes = format.write!(cursor(false), { collection, fields, fieldsChosen: wanted.fields !== undefined, canonical }, (count) => progress.update((rows += count), all && Math.min(rows / all, 1)));
      const isGzip = values.gzip || path?.endsWith(".gz") === true;
      const pieces = isGzip ? gzipped(bytes) : bytes;
      if (path !== undefined) await writeFileWhole(path, pieces, { force: values.force, signal });
      else if (!(await writeToStdout(pieces, signal))) return 0;
    } finally {
      progress.clear();
    }
    progress.end(rows, `written${path === undefined ? "" : ` to ${path}`}`);
    return 0;
  });
}

/** Reads from the options which rows and fields to export. */
function askedFor(values: Values): { filter?: Document; pipeline?: Document[]; sort?: Document; limit: number; fields?: string[] } {
  const { query, pipeline, sort, fields } = values;
  if (query !== undefined && pipeline !== undefined) throw new Usage("--query and --pipeline exclude each other; begin the pipeline with a $match");
  const wanted: ReturnType<typeof askedFor> = { limit: limitOf(values.limit) };
  if (query !== undefined) wanted.filter = documentOf(query, "--query");
  if (pipeline !== undefined) {
    const stages = parseJson(pipeline, "--pipeline");
    if (!Array.isArray(stages)) throw new Usage("--pipeline must be an array of stages");
    wanted.pipeline = stages as Document[];
  }
  if (sort !== undefined) wanted.sort = documentOf(sort, "--sort");
  if (fields !== undefined) {
    wanted.fields = fields.split(",").map((field) => field.trim());
    if (wanted.fields.includes("")) throw new Usage("--fields takes names separated by commas");
    if (new Set(wanted.fields).size < wanted.fields.length) throw new Usage("--fields names a field twice");
  }
  return wanted;
}

/** The format that was named, or the one that the ending of the path implies. */
function formatOf(named: string | undefined, path: string | undefined): FileFormat {
  const names = WRITERS.map(({ name }) => name).join(", ");
  if (named !== undefined) {
    const format = WRITERS.find(({ name, endings }) => name === named || endings.includes(`.${named}`));
    if (!format) throw new Usage(`Unknown format ${named}; the formats are ${names}`);
    return format;
  }
  if (path === undefined) return WRITERS.find(({ name }) => name === "ndjson")!;
  const plain = path.toLowerCase().replace(/\.gz$/, "");
  const format = WRITERS.find(({ endings }) => endings.some((ending) => plain.endsWith(ending)));
  if (!format) throw new Usage(`The extension of ${path} is not a known format; choose one with --format: ${names}`);
  return format;
}

function projection(fields: readonly string[]): Document {
  return { ...(fields.includes("_id") ? {} : { _id: 0 }), ...Object.fromEntries(fields.map((field) => [field, 1])) };
}

function isGiven(sort: Document | undefined): sort is Document {
  return sort !== undefined && Object.keys(sort).length > 0;
}

/** The time-series collections of a database, as `listCollections` describes them. */
export async function timeSeries(db: Database): Promise<Document[]> {
  return (await db.listCollections().toArray()).filter(({ type }) => type === "timeseries");
}

/** A collection, as `listCollections` describes it. */
export async function collectionOf(db: Database, file: string, name: string): Promise<Document> {
  const all = await timeSeries(db);
  const found = all.find((listed) => listed["name"] === name);
  if (found) return found;
  throw new Error(`There is no collection ${name} in ${file}; ${all.length === 0 ? "it has none" : `it has ${all.map((listed) => listed["name"]).join(", ")}`}`);
}

/** A number of rows; 0 means all. */
export function limitOf(text: string | undefined): number {
  const limit = text === undefined ? 0 : Number(text);
  if (text === "" || !Number.isInteger(limit) || limit < 0) throw new Usage(`--limit must be a number, not ${text}`);
  return limit;
}

function documentOf(text: string, what: string): Document {
  const value: unknown = parseJson(text, what);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Usage(`${what} must be an object`);
  return value;
}

/** Extended JSON of an argument, with the types that it names. */
export function parseJson(text: string, what: string): any {
  try {
    return EJSON.parse(text, { relaxed: false });
  } catch (cause) {
    throw new Usage(`${what} is not JSON: ${(cause as Error).message}`);
  }
}

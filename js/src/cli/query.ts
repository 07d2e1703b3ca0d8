// `timepail query`: a find or a pipeline over a file.

import { parseArgs } from "node:util";
import { EJSON } from "bson";
import { Usage, positional, type CliCommand } from "./command.js";
import { ROWS_A_BATCH, collectionOf, limitOf, parseJson } from "./export.js";
import { fieldsOfRows } from "./export/fields.js";
import { interruptible, writeToStdout, type Bytes } from "./export/sink.js";
import { csvWriter } from "./formats/csv-write.js";
import type { Cursor } from "./formats/model.js";
import { ndjsonWriter } from "./formats/ndjson-write.js";
import { tableWriter } from "./formats/table-write.js";
import { openExisting } from "./place.js";

const help = `
Prints the measurements that match a filter, or the results of a pipeline. Filter and pipeline are Extended JSON: {} matches everything,
and { "at": { "$gte": { "$date": "2025-06-01T00:00:00Z" } } } matches everything since 1 June 2025.

  --limit <n>        print at most n results (default: all)
  --sort <json>      sort order, such as '{ "at": -1 }'
  --format <name>    table, ndjson or csv (default: table on a terminal, ndjson elsewhere)
  --canonical        write the type of each number; only for ndjson
  --database <name>  another database of the file, as created by clients of timepail serve
  --explain          print the plan and its execution statistics instead of the results

  timepail query plant.db weather '{ "station": 7 }' --limit 10
  timepail query plant.db weather '[{ "$group": { "_id": "$station", "mean": { "$avg": "$temp" } } }]'
  timepail query plant.db weather '{ "temp": { "$gt": 30 } }' --format csv > hot.csv
`;

export const query: CliCommand = { usage: "query <file> <collection> <filter or pipeline> [options]", summary: "run a query or a pipeline", help, run };

const FORMATS = [tableWriter, ndjsonWriter, csvWriter];

async function run(args: string[]): Promise<number> {
  const options = {
    limit: { type: "string" },
    sort: { type: "string" },
    format: { type: "string" },
    canonical: { type: "boolean", default: false },
    explain: { type: "boolean", default: false },
    database: { type: "string" },
  } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const [file, name, text] = positional(positionals, "file", "collection", "filter");
  const { canonical } = values;
  const asked = parseJson(text!, "The filter or pipeline");
  const limit = limitOf(values.limit);
  const wanted = values.format ?? (process.stdout.isTTY && !canonical ? "table" : "ndjson");
  const format = FORMATS.find((each) => each.name === wanted);
  if (!format) throw new Usage(`--format must be ${FORMATS.map((each) => each.name).join(", ")}, not ${wanted}`);
  if (canonical && format !== ndjsonWriter) throw new Usage("--canonical requires --format ndjson");
  const pipeline = [...(Array.isArray(asked) ? asked : [{ $match: asked }]), ...(values.sort ? [{ $sort: parseJson(values.sort, "--sort") }] : []), ...(limit > 0 ? [{ $limit: limit }] : [])];
  return interruptible(async (signal) => {
    await using db = await openExisting(file!, values.database);
    await collectionOf(db, file!, name!.replace(/^system\.buckets\./, ""));
    const collection = db.collection(name!);
    const cursor = (): Cursor => collection.aggregate(pipeline, { promoteValues: !canonical, bsonRegExp: true, batchSize: ROWS_A_BATCH, signal });
    if (values.explain) {
      await writeToStdout(only(`${EJSON.stringify(await cursor().explain("executionStats"), undefined, 2, { relaxed: true })}\n`), signal);
      return 0;
    }
    const fields = format.needsFields ? await fieldsOfRows(cursor()) : undefined;
    const width = process.stdout.columns ?? undefined;
    await writeToStdout(format.write!(cursor(), { collection, fields, canonical, width }, () => {}), signal);
    return 0;
  });
}

async function* only(text: string): Bytes {
  yield new TextEncoder().encode(text);
}

// `timepail query`: a find or a pipeline over a file.

import { parseArgs } from "node:util";
import { EJSON } from "bson";
import { openFile } from "timepail/file";
import { Usage, existing, positional, type CliCommand } from "./command.js";

const help = `
Prints the measurements that match a filter, or the results of a pipeline, one JSON document a line. Filter and pipeline are Extended JSON: {} matches everything,
and { "at": { "$gte": { "$date": "2025-06-01T00:00:00Z" } } } is since June.

  --limit <n>      print at most so many (default: all)
  --sort <json>    in this order, such as '{ "at": -1 }'
  --canonical      with the type of each number

  timepail query plant.db weather '{ "station": 7 }' --limit 10
  timepail query plant.db weather '[{ "$group": { "_id": "$station", "mean": { "$avg": "$temp" } } }]'
`;

export const query: CliCommand = { usage: "query <file> <collection> <filter or pipeline> [options]", summary: "find, or aggregate", help, run };

async function run(args: string[]): Promise<number> {
  const options = { limit: { type: "string" }, sort: { type: "string" }, canonical: { type: "boolean", default: false } } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const [file, name, text] = positional(positionals, "file", "collection", "filter");
  const asked = parse(text!, "The filter or pipeline");
  const limit = values.limit === undefined ? 0 : Number(values.limit);
  if (!Number.isInteger(limit) || limit < 0) throw new Usage(`--limit must be a number, not ${values.limit}`);
  await using db = await openFile(existing(file!));
  const collection = db.collection(name!);
  const read = { promoteValues: !values.canonical };
  const pipeline = [...(Array.isArray(asked) ? asked : [{ $match: asked }]), ...(values.sort ? [{ $sort: parse(values.sort, "--sort") }] : []), ...(limit > 0 ? [{ $limit: limit }] : [])];
  for await (const document of collection.aggregate(pipeline, read)) {
    // Whoever reads slowly, such as a pager, is waited for.
    if (!process.stdout.write(`${EJSON.stringify(document, { relaxed: !values.canonical })}\n`)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
  return 0;
}

function parse(text: string, what: string): any {
  try {
    return EJSON.parse(text, { relaxed: false });
  } catch (cause) {
    throw new Usage(`${what} is not JSON: ${(cause as Error).message}`);
  }
}

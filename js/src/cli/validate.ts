// `timepail validate`: checks whether the stored data is intact.

import { parseArgs } from "node:util";
import { EJSON, type Document } from "bson";
import { Usage, type CliCommand } from "./command.js";
import { collectionOf, timeSeries } from "./export.js";
import { openExisting } from "./place.js";

const help = `
Checks every bucket, journal record and index entry of a file, or of one collection. The exit code is 0 if everything is valid, and 1 otherwise.

  --full      also decode all measurements; takes longer and finds more
  --repair    correct index entries, and set unreadable data aside. The readable part of a damaged bucket stays; the original bytes are kept until the collection is
              dropped. Implies --full
  --json      print the reply of the command validate, one line of JSON per collection
  --database <name>
              another database of the file, as created by clients of timepail serve

  timepail validate plant.db --full
  timepail validate plant.db weather --repair
`;

export const validate: CliCommand = { usage: "validate <file> [collection] [options]", summary: "check for damage, and repair it", help, run };

async function run(args: string[]): Promise<number> {
  const flag = { type: "boolean", default: false } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { full: flag, repair: flag, json: flag, database: { type: "string" } } });
  const [file, name, more] = positionals;
  if (file === undefined) throw new Usage("Missing argument: file");
  if (more !== undefined) throw new Usage(`Unexpected argument ${more}`);
  // With `"strict"`, a repair is on disk when its command is answered.
  await using db = await openExisting(file, values.database, "strict");
  const collections = name === undefined ? await timeSeries(db) : [await collectionOf(db, file, name)];
  let isValid = true;
  for (const { name } of collections) {
    const found = await db.command({ validate: name, ...(values.full && { full: true }), ...(values.repair && { repair: true }) });
    isValid &&= found["valid"] === true;
    process.stdout.write(values.json ? `${EJSON.stringify({ collection: name, ...found }, { relaxed: true })}\n` : report(name, found));
  }
  if (collections.length === 0 && !values.json) process.stdout.write("There are no collections.\n");
  return isValid ? 0 : 1;
}

const counted = (count: number, one: string, many = `${one}s`): string => `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;

/** A line for the collection, then one for each thing that is wrong. */
function report(name: string, found: Document): string {
  const { valid, repaired, nrecords, nIndexes, nQuarantined, findings, missingIndexEntries: missing, extraIndexEntries: extra, indexDetails } = found;
  const notes = [counted(Number(nrecords), "bucket"), counted(Number(nIndexes), "index", "indexes")];
  if (Number(nQuarantined) > 0) notes.push(`${counted(Number(nQuarantined), "value")} set aside`);
  const lines = [`${name}: ${valid ? (repaired ? "repaired" : "valid") : "INVALID"}, ${notes.join(", ")}`];
  for (const { rule, bucketId, field, message, warning, repaired: isRepaired, measurementsKept } of findings as Document[]) {
    const place = [bucketId && `bucket ${bucketId}`, field && `field ${field}`].filter(Boolean).join(", ");
    const kind = isRepaired ? "repaired" : warning ? "warning" : "error";
    const kept = isRepaired && measurementsKept !== undefined ? ` (${counted(Number(measurementsKept), "measurement")} kept)` : "";
    lines.push(`  ${kind} ${rule}${place && `, ${place}`}${message && `: ${message}`}${kept}`);
  }
  for (const [entries, what] of [[missing, "missing"], [extra, "superfluous"]] as const) {
    for (const { bucketId } of entries as Document[]) lines.push(`  ${repaired ? "repaired" : "error"}, ${what} index entry of bucket ${bucketId}`);
  }
  for (const [index, { valid: isIndexValid }] of Object.entries(indexDetails as Document)) if (!isIndexValid) lines.push(`  index ${index} is not valid`);
  return `${lines.join("\n")}\n`;
}

// `timepail import`: files of measurements into a database file.

import { existsSync, statSync } from "node:fs";
import type { CliCommand } from "./command.js";
import { Usage } from "./command.js";
import { dumped, dumpedIn, type Dumped } from "./import/dump.js";
import { Interrupt } from "./import/interrupt.js";
import { collectionOf, importOptions, type ImportOptions } from "./import/options.js";
import { importBuckets, importRows, type Import } from "./import/run.js";
import { bareName } from "./formats/readers.js";
import { lookInto, openDatabase } from "./place.js";

const help = `
Imports measurements into a database file: CSV, TSV and other delimited text, JSON (one document per line, or an array), Apache Arrow and Parquet, and BSON and folders
of mongodump, each optionally compressed with gzip. - stands for standard input. The collection defaults to the name of the input. It is created if it does not exist. The
detected fields and types are printed first.

  --dry-run                  print what would be done, without doing it
  --strict                   stop at the first bad row, with exit code 1; by default, bad rows are skipped, printed and counted
  --quiet                    print only errors, such as bad rows
  --progress                 print a line after each batch, even if the output is not a terminal

Input:
  --format <name>            csv, ndjson, bson, arrow or parquet (default: by the name or content of the file)
  --types <field=type,…>     number, int, long, decimal, date, string, bool, objectId, object (JSON), mixed (each value has its own type), skip (not stored)
  --rename <field=name,…>    store fields under other names; the name station.id is a field of the document station
  --names <a,b,…>            the column names of delimited text without a header line
  --delimiter <character>    the character between cells, such as ; or tab
  --encoding <name>          the encoding of text, such as windows-1252 (default: utf-8)
  --flat                     keep dots in column names; by default, station.id and station.site become the document station
  --time-unit <unit>         the unit of numeric times: s, ms, us or ns
  --timezone <name>          the time zone of times without one, such as Europe/Berlin (default: UTC)
  --date-order <order>       dmy or mdy, for dates such as 3/4/2025

For a new collection:
  --time-field <field>       the field that holds the time
  --meta-field <field>       the field that identifies the source of a measurement
  --meta <a,b,…>             combine these fields into one document, named by --meta-field
  --granularity <name>       seconds, minutes or hours: the typical interval between measurements of one source
  --expire-after <time>      delete measurements older than this, such as 30d, 12h or 3600 (seconds)
  --dedupe                   rows with the same metadata and time are one measurement, so an import can be repeated
  --dedupe-by <a,b,…>        further fields that distinguish measurements
  --dedupe-keep <which>      of such rows, keep the last (default) or first

  --collection <name>        the collection, if its name could also be a file
  --database <name>          another database of the file, as created by clients of timepail serve

  timepail import plant.db weather stations.csv --dry-run
  timepail import plant.db weather stations.csv --meta-field station --types rpm=int,remark=skip
  zcat *.ndjson.gz | timepail import plant.db weather - --time-field at --dedupe
  timepail import plant.db dump/plant

Ctrl-C stops after the current batch and prints how many rows are stored; the exit code is 130.
`;

export const importCommand: CliCommand = { usage: "import <file> [collection] <input…> [options]", summary: "import CSV, JSON, BSON, Arrow, Parquet, or a dump of mongodump", help, run };

async function run(args: string[]): Promise<number> {
  const options = importOptions(args);
  const works = options.inputs.flatMap((input) => worksOf(input, options));
  const interrupt = new Interrupt();
  try {
    await using db = await (options.isDryRun ? lookInto : openDatabase)(options.file, options.database);
    for (const work of works) {
      if (await work({ db, options, interrupt })) continue;
      return interrupt.code ?? 1;
    }
    return 0;
  } finally {
    interrupt.dispose();
  }
}

/** The work to do for an input. */
function worksOf(input: string, options: ImportOptions): ((job: Import) => Promise<boolean>)[] {
  if (input !== "-" && !existsSync(input)) throw new Error(`There is no file ${input}`);
  if (input !== "-" && statSync(input).isDirectory()) return folderWorks(input, options);
  const name = options.collection;
  if (options.format !== undefined ? options.format !== "bson" || input === "-" : !/\.bson$/i.test(bareName(input))) {
    return [(job) => importRows(job, input, name ?? collectionOf(input))];
  }
  const dump = dumped(input);
  return [dumpWork(dump, name ?? dump.name)];
}

function folderWorks(folder: string, { collection, isQuiet }: ImportOptions): ((job: Import) => Promise<boolean>)[] {
  const { collections, others } = dumpedIn(folder);
  const wanted = collections.filter(({ name }) => collection === undefined || name === collection);
  if (wanted.length === 0) throw new Usage(`There is no time-series collection ${collection ?? ""} in ${folder}`.replace("  ", " "));
  if (others.length > 0 && collection === undefined && !isQuiet) process.stderr.write(`Skipped, because they are not time-series collections: ${others.join(", ")}\n`);
  return wanted.map((dump) => dumpWork(dump, dump.name));
}

function dumpWork(dump: Dumped, name: string): (job: Import) => Promise<boolean> {
  return (job) => (dump.hasBuckets ? importBuckets(job, dump, name) : importRows(job, dump.path, name, dump));
}

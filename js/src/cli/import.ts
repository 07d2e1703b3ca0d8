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
Brings measurements into a database file: CSV, TSV and other delimited text, JSON (a document a line, or an array), Apache Arrow and Parquet, and BSON and folders of
mongodump, each compressed with gzip or not. - is the standard input. Without a collection, the name of the input is that of the collection. The fields and what they were taken for
are shown first. A collection that exists is inserted into; otherwise it is created.

  --dry-run                  show what would be done, and do nothing
  --strict                   stop at the first row that cannot be stored, with exit code 1. Without it, bad rows are skipped, shown and counted
  --quiet                    say nothing but what went wrong
  --progress                 print a line after each batch, on what is no terminal, too

What is in the file:
  --format <name>            csv, ndjson, bson, arrow or parquet, where the name of the file does not tell
  --types <field=type,…>     number, int, long, decimal, date, string, bool, objectId, object (JSON), mixed (each by itself), skip (leave it out)
  --rename <field=name,…>    store fields under other names; station.id goes into the document station
  --names <a,b,…>            the columns of delimited text that has no line of names
  --delimiter <character>    what separates cells, such as ; or tab
  --encoding <name>          the encoding of text, such as windows-1252 (default: utf-8)
  --flat                     keep dots in the names of columns; otherwise station.id and station.site become the document station
  --time-unit <unit>         what times that are numbers count: s, ms, us or ns
  --timezone <name>          where times without a zone were written, such as Europe/Berlin (default: UTC)
  --date-order <order>       dmy or mdy, for dates such as 3/4/2025

The collection, when it is created:
  --time-field <field>       the time of the measurements
  --meta-field <field>       what names their source
  --meta <a,b,…>             these fields together are the document of --meta-field
  --granularity <name>       seconds, minutes or hours: the usual distance of measurements of one source
  --expire-after <time>      delete measurements that are older, such as 30d, 12h or 3600
  --dedupe                   what has the same metadata and time is one measurement: an import can be repeated
  --dedupe-by <a,b,…>        fields that tell measurements apart as well
  --dedupe-keep <which>      last (default) or first

  --collection <name>        the collection, where the argument could be a file, too
  --database <name>          another database of the file, such as timepail serve makes

  timepail import plant.db weather stations.csv --dry-run
  timepail import plant.db weather stations.csv --meta-field station --types rpm=int,remark=skip
  zcat *.ndjson.gz | timepail import plant.db weather - --time-field at --dedupe
  timepail import plant.db dump/plant

Ctrl-C stops after the batch that is being stored, says what is stored, and the exit code is 130.
`;

export const importCommand: CliCommand = { usage: "import <file> [collection] <input…> [options]", summary: "CSV, JSON, Arrow, Parquet, or a dump of mongodump into a file", help, run };

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

/** What is to be done for an input. */
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
  if (others.length > 0 && collection === undefined && !isQuiet) process.stderr.write(`Left out, for they are no time-series collections: ${others.join(", ")}\n`);
  return wanted.map((dump) => dumpWork(dump, dump.name));
}

function dumpWork(dump: Dumped, name: string): (job: Import) => Promise<boolean> {
  return (job) => (dump.hasBuckets ? importBuckets(job, dump, name) : importRows(job, dump.path, name, dump));
}

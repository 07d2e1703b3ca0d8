// `timepail stats`: what is in a file.

import { parseArgs } from "node:util";
import { positional, type CliCommand } from "./command.js";
import { openExisting, otherDatabases } from "./place.js";

const help = `
Shows the collections of a file: the numbers of their measurements and buckets, and their sizes in bytes.

  --json              print JSON, one collection per line
  --database <name>   another database of the file, as created by clients of timepail serve
`;

export const stats: CliCommand = { usage: "stats <file> [options]", summary: "show collections, measurements and bytes", help, run };

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: "boolean", default: false }, database: { type: "string" } } });
  const [file] = positional(positionals, "file");
  await using db = await openExisting(file!, values.database);
  const rows: Record<string, string | number>[] = [];
  for (const { name, type } of await db.listCollections().toArray()) {
    if (type !== "timeseries") continue;
    const found = await db.command({ collStats: name });
    rows.push({
      collection: name,
      measurements: Number(found["timeseries"].numMeasurements),
      buckets: Number(found["timeseries"].bucketCount),
      bytes: Number(found["storageSize"]),
      indexBytes: Number(found["totalIndexSize"]),
    });
  }
  process.stdout.write(values.json ? rows.map((row) => `${JSON.stringify(row)}\n`).join("") : table(rows));
  const others = values.json || values.database !== undefined ? [] : await otherDatabases(file!);
  if (others.length > 0) process.stdout.write(`\nOther databases of the file, for --database: ${others.join(", ")}\n`);
  return 0;
}

/** Rows under the names of their columns; numbers are right-aligned. */
export function table(rows: readonly Record<string, string | number>[]): string {
  if (rows.length === 0) return "There are no collections.\n";
  const names = Object.keys(rows[0]!);
  const shown = [names, ...rows.map((row) => names.map((name) => (typeof row[name] === "number" ? row[name].toLocaleString("en-US") : String(row[name]))))];
  const widths = names.map((_, at) => Math.max(...shown.map((cells) => cells[at]!.length)));
  const isNumber = names.map((name) => typeof rows[0]![name] === "number");
  return shown.map((cells) => `${cells.map((cell, at) => (isNumber[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!))).join("  ").trimEnd()}\n`).join("");
}

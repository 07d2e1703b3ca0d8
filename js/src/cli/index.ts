#!/usr/bin/env node
// `npx timepail`: a database file from the command line.

import { USAGE_CODE, Usage, type CliCommand } from "./command.js";
import { exportCommand } from "./export.js";
import { importCommand } from "./import.js";
import { query } from "./query.js";
import { serveCommand } from "./serve.js";
import { stats } from "./stats.js";
import { user } from "./user.js";
import { validate } from "./validate.js";

/** A row for each command. */
const COMMANDS: Readonly<Record<string, CliCommand>> = { serve: serveCommand, user, stats, query, import: importCommand, export: exportCommand, validate };

function help(): string {
  const width = Math.max(...Object.values(COMMANDS).map(({ usage }) => usage.length));
  const rows = Object.values(COMMANDS).map(({ usage, summary }) => `  timepail ${usage.padEnd(width)}  ${summary}`);
  return `Usage: timepail <command> [options]

${rows.join("\n")}

timepail <command> --help shows the options of a command.
`;
}

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(help());
    return name === undefined ? USAGE_CODE : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (!command) throw new Usage(`Unknown command ${name}`);
    if (args.includes("--help") || args.includes("-h")) {
      process.stdout.write(`Usage: timepail ${command.usage}\n\n${command.help.trim()}\n`);
      return 0;
    }
    return await command.run(args);
  } catch (error) {
    const isUsage = error instanceof Usage || String((error as { code?: unknown }).code).startsWith("ERR_PARSE_ARGS");
    process.stderr.write(`timepail: ${(error as Error).message}\n`);
    if (isUsage) process.stderr.write(`Try: timepail ${command ? `${name} ` : ""}--help\n`);
    return isUsage ? USAGE_CODE : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));

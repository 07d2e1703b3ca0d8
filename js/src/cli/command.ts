// The shape of a command of the command line, and its common checks.

import { statSync } from "node:fs";

/** The exit code of a usage error. */
export const USAGE_CODE = 2;

/** A usage error: the arguments are invalid. */
export class Usage extends Error {
  override name = "Usage";
}

/** A command: how it is called, what it is for, and what it does. */
export interface CliCommand {
  /** Name and arguments. */
  usage: string;
  /** A sentence for the list of commands. */
  summary: string;
  /** What `--help` says. */
  help: string;
  /** Resolves to the exit code. */
  run(args: string[]): Promise<number>;
}

/** Requires exactly these arguments, in this order. */
export function positional(given: string[], ...names: string[]): string[] {
  const missing = names[given.length];
  if (missing !== undefined) throw new Usage(`Missing argument: ${missing}`);
  if (given.length > names.length) throw new Usage(`Unexpected argument ${given[names.length]}`);
  return given;
}

/** Refuses a file that does not exist, because reading must not create it. */
export function existing(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) throw new Error(`There is no file ${path}`);
  return path;
}

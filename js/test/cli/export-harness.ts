// Files and calls of the command line for the tests of `export`, `query` and `validate`.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { EJSON, type Document } from "bson";
// @ts-expect-error a script without types
import { node24 } from "../../scripts/runtimes.mjs";

/** A runtime that has SQLite. */
export const node: string = node24();
export const CLI = join(process.cwd(), "dist/cli.js");
export const folder = mkdtempSync(join(tmpdir(), "timepail-export-"));
after(() => rmSync(folder, { recursive: true, force: true }));

export const file = (name: string): string => join(folder, name);

export interface Ended {
  code: number | null;
  out: string;
  err: string;
  bytes: Buffer;
}

/** Runs `timepail` and waits until it has ended. */
export function timepail(...args: string[]): Ended {
  const { status, stdout, stderr } = spawnSync(node, ["--no-warnings", CLI, ...args], { cwd: folder, maxBuffer: 2 ** 28 });
  return { code: status, out: stdout.toString(), err: stderr.toString(), bytes: stdout };
}

/** Starts `timepail`. */
export function started(...args: string[]): ChildProcess {
  return spawn(node, ["--no-warnings", CLI, ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
}

/** Runs a program with a database; returns what it prints with `print`, parsed as Extended JSON. */
export function inDatabase(name: string, program: string, input: unknown = null): any {
  const source = `
    import { readFileSync } from "node:fs";
    import * as bson from "bson";
    import { openFile } from "timepail/file";
    const { EJSON } = bson;
    const input = EJSON.parse(readFileSync(0, "utf8"), { relaxed: false });
    const print = (value) => process.stdout.write(EJSON.stringify(value, { relaxed: false }));
    await using db = await openFile(${JSON.stringify(file(name))});
    ${program}
  `;
  const { status, stdout, stderr } = spawnSync(node, ["--no-warnings", "--input-type=module", "-e", source], { cwd: process.cwd(), input: EJSON.stringify(input, { relaxed: false }), maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(stderr.toString());
  return stdout.length === 0 ? undefined : EJSON.parse(stdout.toString(), { relaxed: false });
}

/** Creates a file with a collection `c` (time field `at`, meta field `s`), half of it in buckets and the rest in the journal. */
export function made(name: string, documents: readonly Document[], more: Document = {}): string {
  const program = `
    const c = await db.createCollection("c", { timeseries: { timeField: "at", metaField: "s" }, ...input.more });
    const half = input.documents.length >> 1;
    if (half > 0) await c.insertMany(input.documents.slice(0, half));
    await db.flush();
    if (input.documents.length > half) await c.insertMany(input.documents.slice(half));
  `;
  inDatabase(name, program, { documents, more });
  return file(name);
}

// Runs `timepail import` in a separate process, with files in a temporary folder.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { EJSON, type Document } from "bson";
// @ts-expect-error a script without types
import { node24 } from "../../scripts/runtimes.mjs";

const CLI = join(process.cwd(), "dist/cli.js");
const node: string = node24();
export const folder = mkdtempSync(join(tmpdir(), "timepail-import-"));
const running = new Set<ChildProcess>();

after(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

export interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** Runs `timepail` and waits until it has ended. */
export function timepail(args: readonly string[], input: string | Uint8Array = ""): Ended {
  const { status, stdout, stderr } = spawnSync(node, ["--no-warnings", CLI, ...args], { input, encoding: "utf8", cwd: folder, maxBuffer: 1e8 });
  return { code: status, out: stdout, err: stderr };
}

/** Writes a file and returns its name. */
export function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return name;
}

let databases = 0;
/** The path of a new database file, which does not exist yet. */
export const fresh = (): string => `test${++databases}.db`;

/** Rows in an order that does not depend on the random ids of buckets. */
export const sorted = (of: readonly Document[]): Document[] => {
  const key = (row: Document): string => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
  return [...of].sort((a, b) => (key(a) < key(b) ? -1 : 1));
};

/** The measurements of a collection, with typed numbers. */
export function rows(database: string, collection: string): Document[] {
  const { code, out, err } = timepail(["query", database, collection, "{}", "--canonical"]);
  if (code !== 0) throw new Error(err);
  return sorted(out.split("\n").filter(Boolean).map((line) => EJSON.parse(line, { relaxed: false }) as Document));
}

/** The same, with plain numbers. */
export function plainRows(database: string, collection: string): Document[] {
  const { out } = timepail(["query", database, collection, "{}"]);
  return sorted(out.split("\n").filter(Boolean).map((line) => EJSON.parse(line) as Document));
}

/** An import that reads from a pipe. */
export function piped(args: readonly string[]): { child: ChildProcess; said(pattern: RegExp): Promise<void>; ended: Promise<Ended> } {
  const child = spawn(node, ["--no-warnings", CLI, ...args], { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
  running.add(child);
  let [out, err] = ["", ""];
  const waiting = new Set<() => void>();
  child.stdout!.on("data", (text) => (out += text));
  child.stderr!.on("data", (text) => {
    err += text;
    waiting.forEach((check) => check());
  });
  // When the process ends, writing to its pipe fails.
  child.stdin!.on("error", () => {});
  const ended = once(child, "close").then(([code]) => {
    running.delete(child);
    return { code: code as number | null, out, err };
  });
  const said = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (pattern.test(err)) resolve();
      };
      waiting.add(check);
      check();
      void ended.then(() => reject(new Error(`it ended before: ${err}`)));
    });
  return { child, said, ended };
}

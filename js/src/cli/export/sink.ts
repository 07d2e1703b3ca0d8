// Where exported bytes go: a file that gets its name when it is complete, or standard output.

import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { USAGE_CODE } from "../command.js";

export type Bytes = AsyncIterable<Uint8Array>;

/** Compresses the bytes. An error of the input becomes an error of the result. */
export async function* gzipped(pieces: Bytes): Bytes {
  const gzip = createGzip();
  const fed = pipeline(Readable.from(pieces), gzip);
  // The reader of the result gets the error, so ignore it here.
  fed.catch(() => {});
  yield* gzip as Bytes;
  await fed;
}

/** Refuses the path of the database itself, and that of an existing file unless it may be overwritten. */
export function checkTarget(path: string, mayOverwrite: boolean, database: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (found.isDirectory()) throw new Error(`${path} is a folder`);
  const own = statSync(database);
  if (found.ino === own.ino && found.dev === own.dev) throw new Error(`${path} is the database`);
  if (!mayOverwrite) throw new Error(`${path} exists; --force overwrites it`);
}

/** Writes a file under another name, and renames it when it is complete and on disk. If the export ends earlier, no file is left. */
export async function writeFileWhole(path: string, pieces: Bytes, { force, signal }: { force: boolean; signal: AbortSignal }): Promise<void> {
  const unfinished = join(dirname(path), `.${basename(path)}.${process.pid}.unfinished`);
  const file = await open(unfinished, "w");
  try {
    try {
      for await (const piece of pieces) {
        signal.throwIfAborted();
        await file.writeFile(piece);
      }
      signal.throwIfAborted();
      await file.sync();
    } finally {
      await file.close();
    }
    if (!force && existsSync(path)) throw new Error(`${path} was created during the export; --force overwrites it`);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Writes to standard output, no faster than it is read. A reader that goes away, such as `head`, ends it without an error: `false`. */
export async function writeToStdout(pieces: Bytes, signal?: AbortSignal): Promise<boolean> {
  const out = process.stdout;
  let failure: NodeJS.ErrnoException | undefined;
  // Keep the listener, because the error of the last write may come late.
  out.on("error", (error) => (failure ??= error));
  try {
    for await (const piece of pieces) {
      signal?.throwIfAborted();
      if (failure) throw failure;
      if (piece.length > 0 && !out.write(piece)) await once(out, "drain", signal ? { signal } : {});
    }
    // Writing the rest of the buffer may still fail.
    await new Promise<void>((resolve, reject) => out.write("", (error) => (error ? reject(error) : resolve())));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") return false;
    throw error;
  }
  return true;
}

/**
 * Runs work that Ctrl-C aborts. Resolves to the exit code of the work. After a signal, it waits for the work to clean up. If the work throws then, it exits with the code of that signal.
 * All errors before a signal are thrown.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = new AbortController();
  let code = USAGE_CODE;
  const handlers = ([["SIGINT", 130], ["SIGTERM", 143]] as const).map(([name, number]) => {
    const handler = (): void => {
      // A second signal ends the process at once.
      if (stop.signal.aborted) process.exit(number);
      code = number;
      stop.abort();
    };
    process.on(name, handler);
    return [name, handler] as const;
  });
  try {
    return await work(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    // A reader that has stopped reading would keep the process alive.
    return process.exit(code);
  } finally {
    for (const [name, handler] of handlers) process.off(name, handler);
  }
}

// Imports one input into a database, batch by batch.

import process from "node:process";
import type { Document } from "bson";
import type { Database } from "../../index.js";
import type { Batch, InputFile, OpenedFile } from "../formats/model.js";
import { documentsOf } from "../formats/bson-read.js";
import { readerOf } from "../formats/readers.js";
import { openInput } from "../input.js";
import { Progress, count, type Noun } from "../progress.js";
import { createIndexes, guessed, isBucket, type Dumped } from "./dump.js";
import type { Interrupt } from "./interrupt.js";
import { SHOWN_MAX } from "./limits.js";
import type { ImportOptions } from "./options.js";
import { existingCollection, nameInFile, planOf, type CollectionPlan } from "./plan.js";
import { shaped } from "./shape.js";
import { Store } from "./store.js";

/** `DuplicateKey`. */
const DUPLICATE_KEY = 11_000;
/** Buckets that are inserted together. */
const BUCKET_BATCH = 100;

/** What the imports of a call share. */
export interface Import {
  db: Database;
  options: ImportOptions;
  interrupt: Interrupt;
}

/** Imports a file of measurements. Resolves to whether to go on with other inputs. */
export async function importRows({ db, options, interrupt }: Import, path: string, name: string, dump?: Dumped): Promise<boolean> {
  const file = await openFileOf(path, interrupt);
  if (!file) return false;
  try {
    const existing = await existingCollection(db, name);
    const fromDump = existing ? undefined : dump?.options;
    const opened = await interrupt.or(openAs(file, options, existing ?? fromDump));
    if (opened === "stop") {
      process.stderr.write(`Stopped: nothing stored in ${name}\n`);
      return false;
    }
    const plan = planOf(name, existing ?? fromDump, opened, options);
    if (fromDump) Object.assign(plan, { create: fromDump, text: `${plan.text.replace(/Into the collection .*\n$/, "")}New collection ${name}, with the options of the dump.\n` });
    say(options, `${file.name}: ${opened.about ?? "rows"}\n\n${plan.text}\n`);
    if (options.isDryRun) return true;
    if (plan.create) await db.createCollection(name, plan.create);
    if (dump) await createIndexes(db, name, dump.indexes);
    const report = new Report(file, options, name, "row");
    const store = new Store(db.collection(name), options.isStrict, (bad) => report.bad("Line", bad.line, bad.message));
    return await report.follow(interrupt, opened.batches(), store, async (batch: Batch) => store.add(shaped(batch, plan.shape)));
  } finally {
    file.close();
  }
}

/** Imports buckets as they are. */
export async function importBuckets({ db, options, interrupt }: Import, { path, options: created, indexes }: Dumped, name: string): Promise<boolean> {
  const file = await openFileOf(path, interrupt);
  if (!file) return false;
  try {
    let isReady = false;
    const report = new Report(file, options, name, "bucket");
    const total = { rows: 0, bad: 0, present: 0 };
    const prepare = async (buckets: readonly Document[]): Promise<void> => {
      isReady = true;
      if (!buckets.every(isBucket)) throw new Error(`${file.name} does not hold buckets of a time-series collection`);
      const existing = await existingCollection(db, name);
      const plan = existing ?? created ?? guessed(buckets);
      const from = existing ? "which exists" : created ? "with the options of the dump" : "with guessed options";
      say(options, `${file.name}: buckets\n\n${existing ? "Into the" : "New"} collection ${name}, ${from}: ${JSON.stringify(plan.timeseries)}\n\n`);
      if (options.isDryRun) return;
      if (!existing) await db.createCollection(name, plan);
      await createIndexes(db, name, indexes);
    };
    const insert = async (documents: Document[], lines: readonly number[]): Promise<boolean> => {
      const reply = await db.command({ insert: `system.buckets.${name}`, documents, ordered: options.isStrict, unsafeBucketWrites: true });
      total.rows += Number(reply["n"]);
      for (const { index, code, errmsg } of (reply["writeErrors"] ?? []) as { index: number; code: number; errmsg: string }[]) {
        if (code === DUPLICATE_KEY && !options.isStrict) total.present++;
        else {
          total.bad++;
          report.bad("Bucket", lines[index]!, errmsg);
          if (options.isStrict) return false;
        }
      }
      return true;
    };
    const ended = await report.follow(interrupt, bucketBatches(file), total, async ({ documents, lines, bad }) => {
      for (const one of bad) report.bad("Bucket", one.line, one.message);
      total.bad += bad.length;
      if (documents.length > 0 && !isReady) await prepare(documents);
      if (options.isDryRun) return false;
      if (documents.length > 0 && !(await insert(documents, lines))) return false;
      return !(options.isStrict && bad.length > 0);
    });
    return options.isDryRun || ended;
  } finally {
    file.close();
  }
}

async function openFileOf(path: string, interrupt: Interrupt): Promise<InputFile | undefined> {
  const file = await interrupt.or(openInput(path));
  return file === "stop" ? undefined : file;
}

function openAs(file: InputFile, options: ImportOptions, existing: CollectionPlan | undefined): Promise<OpenedFile> {
  const { timeUnit: unit, zone, order, names, delimiter, encoding, types } = options;
  const timeField = nameInFile(existing?.timeseries.timeField ?? options.timeField, options);
  return readerOf(file, options.format).open!(file, { types, names, delimiter, encoding, timeField, times: { unit, zone, order } });
}

async function* bucketBatches(file: InputFile): AsyncGenerator<{ documents: Document[]; lines: number[]; bad: { line: number; message: string }[] }> {
  for await (const { documents, lines, bad } of documentsOf(file)) {
    for (let at = 0; at < documents.length; at += BUCKET_BATCH) yield { documents: documents.slice(at, at + BUCKET_BATCH), lines: lines.slice(at, at + BUCKET_BATCH), bad: [] };
    if (bad.length > 0) yield { documents: [], lines: [], bad };
  }
}

function say({ isQuiet }: ImportOptions, text: string): void {
  if (!isQuiet) process.stdout.write(text);
}

/** Reports the progress and the result of an import. */
class Report {
  readonly #file: InputFile;
  readonly #options: ImportOptions;
  readonly #name: string;
  readonly #noun: Noun;
  readonly #progress: Progress;
  #shown = 0;

  constructor(file: InputFile, options: ImportOptions, name: string, noun: Noun) {
    this.#file = file;
    this.#options = options;
    this.#name = name;
    this.#noun = noun;
    this.#progress = new Progress({ noun, isQuiet: options.isQuiet, isLines: options.isProgress });
  }

  /** Shows the first problems, and leaves the others to the count at the end. */
  bad(what: string, line: number, message: string): void {
    if (++this.#shown > SHOWN_MAX) return;
    this.#progress.clear();
    process.stderr.write(`${what} ${line}: ${message}\n`);
  }

  /** Takes batches until the last one, until one is not fully stored, or until a stop signal. Then reports what is stored. */
  async follow<T>(interrupt: Interrupt, batches: AsyncIterable<T>, total: { rows: number; bad: number; present?: number }, take: (batch: T) => Promise<boolean>): Promise<boolean> {
    const source = batches[Symbol.asyncIterator]();
    let isWhole = false;
    try {
      for (;;) {
        const next = await interrupt.or(source.next());
        if (next === "stop") return false;
        if (next.done) break;
        if (!(await take(next.value))) return false;
        this.#progress.update(total.rows, this.#file.size ? Math.min(this.#file.bytesRead() / this.#file.size, 1) : undefined);
      }
      return (isWhole = true);
    } finally {
      this.#progress.clear();
      if (!this.#options.isDryRun) this.#end(isWhole, total);
    }
  }

  #end(isWhole: boolean, { rows, bad, present = 0 }: { rows: number; bad: number; present?: number }): void {
    if (this.#shown > SHOWN_MAX) process.stderr.write(`and ${(this.#shown - SHOWN_MAX).toLocaleString("en-US")} more\n`);
    // With --quiet, the summary is printed only if something was not stored.
    if (this.#options.isQuiet && isWhole && bad === 0) return;
    const where = `stored in ${this.#name}`;
    const problems = [present > 0 && `${present.toLocaleString("en-US")} already stored`, bad > 0 && `${count(bad, `bad ${this.#noun}`)}${isWhole ? " skipped" : ""}`];
    this.#progress.end(rows, where, problems, isWhole);
  }
}

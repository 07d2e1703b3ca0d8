// A SQLite file that cannot grow by another page: what fails, and what makes room.

import { open, type Collection, type CreateCollectionOptions, type Database } from "timepail";
import { sqliteStorage, type SqliteDatabase } from "timepail/sqlite";
import type { Step } from "./end-to-end.ts";
import { same } from "./expect.ts";

interface Reading {
  at: Date;
  series: string;
  noise: Uint8Array;
}

const PAGES = 700;
const START = Date.UTC(2024, 0, 1);
const HOUR = 3_600_000;
const ROWS = 100;

/** An hour of one of four series. Random data does not compress; deleted rows share no bucket and no call with remaining ones. */
const rows = (hour: number, count = ROWS): Reading[] =>
  Array.from({ length: count }, (_, n) => ({ at: new Date(START + hour * HOUR + n), series: `s${hour % 4}`, noise: crypto.getRandomValues(new Uint8Array(500)) }));

/**
 * Inserts hours until one finds no room, and then single rows until not even one fits. Resolves to the number of stored hours: some in buckets, the others in the
 * journal. The single rows are much later than all hours, in a separate series.
 */
async function filled(db: Database, c: Collection<Reading>): Promise<number> {
  for (let [hours, singles] = [0, 0]; ; ) {
    try {
      if (singles) await c.insertMany(rows(4000 + singles, 1).map((row) => ({ ...row, series: "rest" })));
      else await c.insertMany(rows(hours));
    } catch (error) {
      const { code, codeName, message } = error as { code?: number; codeName?: string; message: string };
      same([code, codeName, /database or disk is full/.test(message)], [14031, "OutOfDiskSpace", true]);
      if (singles) return hours;
      same(await c.countDocuments(), hours * ROWS);
      singles = 1;
      continue;
    }
    if (singles) singles++;
    else if (++hours % 8 === 4) await db.flush();
  }
}

/** Runs `work` on a full database with a stopped clock, so that no retention pass begins by itself. */
async function whenFull(handle: SqliteDatabase, options: Partial<CreateCollectionOptions>, work: (db: Database, c: Collection<Reading>, hours: number) => Promise<void>): Promise<void> {
  const { now } = Date;
  Date.now = () => START;
  try {
    const storage = sqliteStorage(handle);
    handle.exec(`PRAGMA max_page_count = ${PAGES}`);
    const db = await open("full", { storage, retentionIntervalMS: 1e6 });
    const c = await db.createCollection<Reading>("c", { ...options, timeseries: { timeField: "at", metaField: "series" } });
    const hours = await filled(db, c);
    same(hours > 12, true);
    await work(db, c, hours);
    await c.deleteMany({ series: "rest" });
    same((await c.insertMany(rows(1000))).insertedCount, ROWS);
    await db.flush();
    same((await db.command({ validate: "c", full: true }))["valid"], true);
    await db.close();
  } finally {
    Date.now = now;
  }
}

const stored = (c: Collection<Reading>): Promise<number> => c.countDocuments({ series: { $ne: "rest" } });

/** Test steps, each on its own file. */
export const full = (file: (name: string) => SqliteDatabase): Step[] => [
  {
    name: "a full database says so by its code, is emptied by series, by time and by collection, and takes inserts again",
    run: () =>
      whenFull(file("full-deletes"), {}, async (_, c, hours) => {
        const of = (matches: (hour: number) => boolean): number => ROWS * Array.from({ length: hours }, (_, hour) => hour).filter(matches).length;
        same((await c.deleteMany({ series: "s1" })).deletedCount, of((hour) => hour % 4 === 1));
        same((await c.deleteMany({ at: { $lt: new Date(START + 8 * HOUR) } })).deletedCount, of((hour) => hour < 8 && hour % 4 !== 1));
        same(await stored(c), of((hour) => hour >= 8 && hour % 4 !== 1));
      }),
  },
  {
    name: "a collection is dropped from a full database",
    run: () =>
      whenFull(file("full-drop"), {}, async (db, c) => {
        same(await c.drop(), true);
        await db.createCollection("c", { timeseries: { timeField: "at", metaField: "series" } });
      }),
  },
  {
    name: "retention deletes from a full database what is too old",
    run: () =>
      whenFull(file("full-expire"), { expireAfterSeconds: 100 * 3600 }, async (db, c, hours) => {
        Date.now = () => START + (100 + 10) * HOUR;
        same((await db.command({ expire: 1 }))["nMeasurements"], ROWS * 10);
        same(await stored(c), ROWS * (hours - 10));
      }),
  },
  {
    name: "a bound in bytes holds in a full database",
    run: () =>
      whenFull(file("full-bytes"), { maxBytes: 500_000 }, async (db, c, hours) => {
        const { nMeasurements } = await db.command({ expire: 1 });
        same(await stored(c), ROWS * hours - Number(nMeasurements));
        same((await stored(c)) <= 1000, true);
      }),
  },
  {
    name: "whole buckets that go make room for the one that a delete parts",
    run: () =>
      whenFull(file("full-part"), {}, async (_, c, hours) => {
        const gone = 4 * ROWS + ROWS / 2;
        same((await c.deleteMany({ at: { $lt: new Date(START + 4 * HOUR + ROWS / 2) } })).deletedCount, gone);
        same(await stored(c), hours * ROWS - gone);
      }),
  },
];

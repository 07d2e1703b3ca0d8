// The part of the benchmark of the live tail that runs in Node 24: rows in SQLite, in memory, and the bytes that go to a storage.
//
// `bench/live.mjs` starts it with its task as JSON; its last line of output is the result.

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { open } from "../../js/dist/node.js";
import { sqliteStorage } from "../../js/dist/sqlite.js";
import { MemoryStorage } from "../../js/dist/testing.js";
import { compare, folding, growth, ingest } from "../page/live/measure.js";
import { Plant, timeseries } from "../page/live/plant.js";

/** Journal records have keys that begin with this byte, and buckets, index entries with these. */
const [JOURNAL, BUCKET, INDEX] = ["J", "B", "I"].map((letter) => letter.charCodeAt(0));
const KINDS = { [JOURNAL]: "journal", [BUCKET]: "buckets", [INDEX]: "index" };
const ORPHANS_DELAY_MS = 1000;

/**
 * Opens a database over a storage that others may have open. A second later it would fold their journals once, because it does not know whether
 * they are alive. This is suppressed, because a reader of unfolded rows is measured.
 */
async function openBeside(name, storage) {
  const start = globalThis.setTimeout;
  globalThis.setTimeout = (work, ms, ...rest) => start(work, ms === ORPHANS_DELAY_MS ? 2 ** 31 - 1 : ms, ...rest);
  try {
    return await open(name, { storage });
  } finally {
    globalThis.setTimeout = start;
  }
}

function sqlite(folder) {
  const handles = new Map();
  const file = (name) => join(folder, `${name}.db`);
  return {
    name: "SQLite",
    async open(name) {
      const handle = new DatabaseSync(file(name));
      handles.set(name, [...(handles.get(name) ?? []), handle]);
      return openBeside(name, sqliteStorage(handle));
    },
    async records(name) {
      const range = "SELECT count(*) AS records FROM timepail WHERE key >= ? AND key < ?";
      return handles.get(name)[0].prepare(range).get(Uint8Array.of(JOURNAL), Uint8Array.of(JOURNAL + 1)).records;
    },
    async bare() {
      const handle = new DatabaseSync(file("bare"));
      handle.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE puts (key INTEGER PRIMARY KEY, value BLOB)");
      const put = handle.prepare("INSERT INTO puts (value) VALUES (?)");
      return {
        put: async (bytes) => void put.run(bytes),
        async close() {
          handle.close();
          for (const end of ["", "-wal", "-shm"]) rmSync(file("bare") + end, { force: true });
        },
      };
    },
    async drop(name) {
      for (const handle of handles.get(name)) handle.close();
      handles.delete(name);
      for (const end of ["", "-wal", "-shm"]) rmSync(file(name) + end, { force: true });
    },
  };
}

/** The engine's memory storage, which only one context can open; so there is no second context. */
const memory = {
  name: "memory",
  open: (name) => open(name, { storage: "memory" }),
  records: async () => undefined,
  drop: async () => {},
};

/** A storage that counts the written bytes of keys and values, by kind of key; deleted keys count too. */
class Counted {
  bytes = { journal: 0, buckets: 0, index: 0, others: 0 };
  commits = 0;

  constructor(storage) {
    this.storage = storage;
  }

  getMany(keys) {
    return this.storage.getMany(keys);
  }

  scan(ranges, page) {
    return this.storage.scan(ranges, page);
  }

  commit(changes) {
    this.commits++;
    for (const [kind, key, value] of changes) {
      if (kind !== "require") this.bytes[KINDS[key[0]] ?? "others"] += key.length + (value?.length ?? 0);
    }
    return this.storage.commit(changes);
  }
}

/** Bytes written per point: while rows come in, and including a final flush. */
async function written(folder, { task, options, rows }) {
  const file = join(folder, "written.db");
  const handle = new DatabaseSync(file);
  const storage = new Counted(sqliteStorage(handle));
  const db = await openBeside("written", storage);
  const points = await db.createCollection("points", { timeseries });
  const plant = new Plant(options);
  storage.bytes = { journal: 0, buckets: 0, index: 0, others: 0 };
  while (plant.rows < rows) await points.insertMany(plant.next(), { ordered: false });
  const each = (bytes) => Object.fromEntries(Object.entries({ ...bytes, all: Object.values(bytes).reduce((a, b) => a + b, 0) }).map(([kind, n]) => [kind, n / rows]));
  const before = each(storage.bytes);
  await db.flush();
  const after = each(storage.bytes);
  await db.close();
  handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  handle.close();
  const disk = statSync(file).size / rows;
  rmSync(file);
  return { task, rows, before, after, disk };
}

const order = JSON.parse(process.argv[2]);
const log = (line) => process.stderr.write(`${line}\n`);
const folder = mkdtempSync(join(tmpdir(), "timepail-live-"));
try {
  const places = { sqlite: sqlite(folder), memory };
  const parts = { compare, growth, ingest, folding };
  const result = order.part === "written" ? await written(folder, order) : await parts[order.part](places[order.place], { ...order, log });
  console.log(JSON.stringify(result));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

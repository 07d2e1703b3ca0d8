// Engines in worker threads, in Node, Bun and Deno.

import { writeFileSync } from "node:fs";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { ServerError, WorkerError, open, type OpenOptions } from "timepail";
import { MemoryStorage } from "timepail/testing";
import type { Step } from "./end-to-end.ts";
import { failure, same } from "./expect.ts";
import { report } from "./report.ts";

const memory = (worker: OpenOptions["worker"]): OpenOptions => ({ storage: "memory", worker });
const timeseries = { timeField: "at", metaField: "m" };
const rows = (count: number): { at: Date; m: string; n: number }[] => Array.from({ length: count }, (_, n) => ({ at: new Date(n), m: `m${n % 3}`, n }));

/** Starts a worker of the user's own, whose file is in the folder of the test. */
function own(): Worker {
  const file = new URL("own-worker.mjs", import.meta.url);
  writeFileSync(file, 'import "timepail/worker";\n');
  return new Worker(file);
}

const steps: Step[] = [
  {
    name: "a thread gives the same results and errors",
    async run() {
      const db = await open("threads", memory(true));
      const c = await db.createCollection("c", { timeseries });
      same((await c.insertMany(rows(1000))).insertedCount, 1000);
      same(await c.aggregate([{ $group: { _id: "$m", n: { $sum: "$n" } } }, { $sort: { _id: 1 } }]).toArray(), [{ _id: "m0", n: 166_833 }, { _id: "m1", n: 166_167 }, { _id: "m2", n: 166_500 }]);
      const error = await failure(c.find({ n: { $frob: 1 } }).toArray());
      same([error instanceof ServerError, error.codeName], [true, "BadValue"]);
      // Others would be told that the worker has ended.
      const other = await open("other", memory(true));
      await other.close();
      same(await c.countDocuments(), 1000);
      await db.close();
    },
  },
  {
    name: "a thread that ends takes its memory with it, and says so",
    async run() {
      let worker: Worker;
      const db = await open("ended", memory(() => (worker = own())));
      const c = await db.createCollection("c", { timeseries });
      await c.insertMany(rows(10));
      const waiting = failure(c.countDocuments());
      await worker!.terminate();
      for (const error of [await waiting, await failure(c.countDocuments())]) {
        same([error instanceof WorkerError, /has ended.*; its measurements were in memory only, and are gone/.test(error.message)], [true, true]);
      }
      await db.close();
    },
  },
  {
    name: "a thread that was passed serves several databases, and is not ended",
    async run() {
      const worker = own();
      for (const name of ["one", "two"]) {
        const db = await open(name, memory(worker));
        const c = await db.createCollection("c", { timeseries });
        await c.insertMany(rows(10));
        same(await c.countDocuments(), 10);
        await db.close();
      }
      await worker.terminate();
    },
  },
  {
    name: "what cannot be in a thread is refused, and a script that is missing is told",
    async run() {
      const refused = await failure(open("refused", { worker: true, storage: new MemoryStorage() }));
      same([refused.name, /^A storage object cannot go to a worker/.test(refused.message)], ["TypeError", true]);
      const missing = await failure(open("missing", memory("nowhere.js")));
      same([missing instanceof WorkerError, /cannot be started: .*; its script is node-worker\.js of the package/s.test(missing.message)], [true, true]);
    },
  },
];

if (process.argv[2] === "left") {
  const db = await open("left", memory(true));
  await db.createCollection("c", { timeseries });
  console.log("ok a database that was left open in a thread lets its process end");
} else {
  process.stdout.write(await report(steps, () => Promise.reject(new Error("no storage")), "threads"));
}

// A database in a file, and the warning about databases in memory, each in its own process with the package installed as users install it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { open, type OpenOptions } from "timepail";
import { openFile } from "timepail/file";
// @ts-expect-error a script without types
import { installed, node24 } from "../scripts/runtimes.mjs";

const folder = mkdtempSync(join(tmpdir(), "timepail-file-"));
installed(folder);
after(() => rmSync(folder, { recursive: true, force: true }));

/** The standard output and the warnings of a program in Node 24. */
function run(program: string, ...flags: string[]): Promise<{ out: string; err: string }> {
  writeFileSync(join(folder, "program.mjs"), program);
  return new Promise((resolve, reject) => {
    execFile(node24(), [...flags, join(folder, "program.mjs")], { cwd: folder }, (error, out, err) => (error ? reject(new Error(err)) : resolve({ out, err })));
  });
}

const count = `
  import { openFile } from "timepail/file";
  await using db = await openFile("data.v1.db", { durability: "strict", generateIds: true });
  const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
  await c.insertOne({ at: new Date(0) });
  console.log(db.databaseName, await c.countDocuments());
`;

test("a file is opened, kept and closed", async () => {
  assert.equal((await run(count)).out, "data.v1 1\n");
  assert.equal((await run(count)).out, "data.v1 2\n");
  const closes = `
    import { openFile } from "timepail/file";
    const db = await openFile("closes.db");
    await db.close();
    await db.close();
    await db.command({ ping: 1 }).catch((error) => console.log(error.name));
  `;
  assert.equal((await run(closes)).out, "ClosedError\n");
});

/** Hides node:sqlite from everything but the stand-in, like Node 20. */
const WITHOUT = `
  import { registerHooks } from "node:module";
  registerHooks({
    resolve(name, context, next) {
      if (name === "node:sqlite" && !context.parentURL.includes("better-sqlite3")) throw Object.assign(new Error(name), { code: "ERR_UNKNOWN_BUILTIN_MODULE" });
      return next(name, context);
    },
  });
`;

/** better-sqlite3 with its differences: a statement says whether it returns data, and blobs are buffers. */
const STAND_IN = `
  import { DatabaseSync } from "node:sqlite";
  const buffers = (row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value instanceof Uint8Array ? Buffer.from(value) : value]));
  export default class Database {
    #db;
    constructor(path) { this.#db = new DatabaseSync(path); console.log("better-sqlite3", path); }
    exec(sql) { this.#db.exec(sql); return this; }
    close() { this.#db.close(); return this; }
    prepare(sql) {
      const statement = this.#db.prepare(sql);
      const returns = /^(SELECT|PRAGMA)/i.test(sql);
      return {
        all(...of) { if (!returns) throw new TypeError("This statement does not return data. Use run() instead"); return statement.all(...of).map(buffers); },
        run(...of) { if (returns) throw new TypeError("This statement returns data. Use get(), all(), or iterate() instead"); return statement.run(...of); },
      };
    }
  }
`;

test("without node:sqlite, better-sqlite3 takes its place where it is installed", async () => {
  writeFileSync(join(folder, "without.mjs"), WITHOUT);
  const without = ["--import", join(folder, "without.mjs")];
  await assert.rejects(run(count, ...without), /A database in a file needs SQLite: Node 22\.13 or later, Bun and Deno have it; in an earlier Node, run npm install better-sqlite3/);
  const module = join(folder, "node_modules/better-sqlite3");
  mkdirSync(module);
  writeFileSync(join(module, "package.json"), JSON.stringify({ name: "better-sqlite3", type: "module", exports: "./index.js" }));
  writeFileSync(join(module, "index.js"), STAND_IN);
  const { out } = await run(count, ...without);
  assert.match(out, /^better-sqlite3 data\.v1\.db\ndata\.v1 \d\n$/);
  const contract = `
    import Database from "better-sqlite3";
    import { sqliteStorage } from "timepail/sqlite";
    import { storageContract } from "timepail/testing";
    for (const [at, { check }] of storageContract.entries()) {
      const handle = () => sqliteStorage(new Database("contract" + at + ".db"));
      await check(handle(), handle());
    }
    console.log("kept");
  `;
  assert.match((await run(contract)).out, /kept\n$/, "the rules of a storage hold");
});

test("openFile takes only a path", async () => {
  await assert.rejects(openFile(undefined as unknown as string), /openFile takes the path of a file/);
  await assert.rejects(openFile(""), TypeError);
  await assert.rejects(run(`import { openFile } from "timepail/file"; await openFile("absent/plant.db");`), /absent\/plant\.db: unable to open database file/);
});

test("more of what is read stays in memory than in a page, or as much as the parameter says", async () => {
  const bytesWith = async (options: OpenOptions): Promise<unknown> => {
    await using db = await open("plant", { storage: "memory", ...options });
    const { readCacheBytes, timeseriesBucketMaxCount } = await db.command({ getParameter: "*" });
    return [readCacheBytes, timeseriesBucketMaxCount];
  };
  assert.deepEqual(await bytesWith({}), [2 ** 28, 1000]);
  assert.deepEqual(await bytesWith({ parameters: { timeseriesBucketMaxCount: 10 } }), [2 ** 28, 10]);
  assert.deepEqual(await bytesWith({ parameters: { readCacheBytes: 0 } }), [0, 1000]);
  for (const parameters of [5, null]) {
    await assert.rejects(bytesWith({ parameters: parameters as never }), { codeName: "InvalidOptions", message: new RegExp(`parameters must be an object, not ${parameters}`) });
  }
});

test("without a storage, a warning about memory appears once", async () => {
  const { err } = await run(`
    import { open } from "timepail";
    await (await open("plant")).close();
    await (await open("other")).close();
  `);
  assert.equal(err.match(/TimepailWarning/g)?.length, 1);
  assert.match(err, /open\("plant"\) keeps its data in memory and forgets it at the end\. To keep it, use openFile of timepail\/file, or say storage: "memory"/);
  const quiet = `
    import { open } from "timepail";
    await (await open("plant", { storage: "memory" })).close();
  `;
  assert.equal((await run(quiet)).err, "");
});

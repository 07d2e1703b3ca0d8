// `timepail/server` as a library in Node, Bun and Deno: the example of the guide, and one with users and TLS.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
// @ts-expect-error a script without types
import { bun, deno, installed, node24 } from "../../scripts/runtimes.mjs";
import { CERTIFICATE, MongoClient, file } from "./harness.ts";

const home = file("runtimes");
installed(home);
cpSync(join(process.cwd(), "examples/runtimes/serve.mjs"), join(home, "serve.mjs"));
writeFileSync(join(home, "secured.mjs"), `
  import { readFileSync } from "node:fs";
  import process from "node:process";
  import { serve } from "timepail/server";

  const pem = readFileSync(${JSON.stringify(CERTIFICATE)});
  const server = await serve({ file: process.argv[2], port: 0, auth: { ada: "secret" }, tls: { cert: pem, key: pem } });
  console.log(server.uri.replace("127.0.0.1", "localhost").replace("//", "//ada:secret@"));
  process.once("SIGTERM", () => server.close());
`);

const RUNTIMES: Record<string, string[]> = { Node: [node24(), "--no-warnings"], Bun: [bun()], Deno: deno() };
const children = new Set<ReturnType<typeof spawn>>();
after(() => children.forEach((child) => child.kill("SIGKILL")));

for (const [name, [program, ...flags]] of Object.entries(RUNTIMES)) {
  for (const [script, options] of [["serve.mjs", {}], ["secured.mjs", { tls: true, tlsCAFile: CERTIFICATE, compressors: ["zlib"] }]] as const) {
    test(`${script} in ${name}`, async () => {
      const child = spawn(program!, [...flags, join(home, script), join(home, `${name}-${script}.db`), "0"], { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
      children.add(child);
      let said = "";
      child.stderr.on("data", (text) => (said += text));
      const uri = await new Promise<string>((resolve, reject) => {
        child.stdout.on("data", (line) => resolve(/mongodb:\S+/.exec(String(line))![0]));
        child.once("exit", (code) => reject(new Error(`ended with ${code}: ${said}`)));
      });
      const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5000, ...options });
      const db = client.db("plant");
      const c = await db.createCollection("c", { timeseries: { timeField: "at" } });
      await c.insertMany(Array.from({ length: 5000 }, (_, n) => ({ at: new Date(n * 1000), n, text: "x".repeat(100) })));
      assert.equal((await c.find().batchSize(500).toArray()).length, 5000);
      assert.equal((await c.aggregate([{ $group: { _id: null, sum: { $sum: "$n" } } }]).next()).sum, 12_497_500);
      await client.close();
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null], said);
      children.delete(child);
    });
  }
  test(`the command line in ${name}`, () => {
    const cli = join(home, "node_modules/timepail/dist/cli.js");
    const { stdout, stderr } = spawnSync(program!, [...flags, cli, "query", join(home, `${name}.db`), "c", "{}"], { cwd: home, encoding: "utf8" });
    assert.match(stderr, /^timepail: There is no file /, stdout);
    const made = spawnSync(program!, [...flags, cli, "user", join(home, `${name}.db`), "ada"], { cwd: home, encoding: "utf8", input: "secret\n" });
    assert.deepEqual([made.status, made.stdout], [0, ""], made.stderr);
    assert.equal(spawnSync(program!, [...flags, cli, "user", join(home, `${name}.db`), "--list"], { cwd: home, encoding: "utf8" }).stdout, "ada\n");
    assert.equal(spawnSync(program!, [...flags, cli, "stats", join(home, `${name}.db`)], { cwd: home, encoding: "utf8" }).stdout, "There are no collections.\n");
  });
}

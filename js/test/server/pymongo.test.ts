// PyMongo against `timepail serve`: pymongo_client.py runs the tests, and prints the result of each.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CERTIFICATE, as, file, places, served, timepail } from "./harness.ts";

/** Runs Python, and returns its exit code and output. */
async function python(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn("python3", args, { env: { ...process.env, PYTHONPATH: places.python }, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (err += text));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, out, err };
}

test("the example of the guide runs", async () => {
  const guide = readFileSync(join(process.cwd(), "../docs/server.md"), "utf8");
  const [, program] = /```python\n([^]*?)```/.exec(guide)!;
  const { uri, end } = await served("plant.db");
  assert.deepEqual(await python("-c", program!.replace("mongodb://127.0.0.1:27017", uri)), { code: 0, out: "{'_id': 'roof', 'mean': 19.5}\n", err: "" });
  await end();
});

test("PyMongo", async (t) => {
  assert.equal(timepail(["user", file("users.db"), "märz"], "pässword/ⅸ\n").code, 0);
  const [plain, users, tls] = await Promise.all([served("plain.db"), served("users.db", "--auth"), served("tls.db", "--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE)]);
  // Other characters that SASLprep maps to the same password.
  const uris = [plain.uri, as(users.uri, "märz", "pässword/ix"), as(users.uri, "märz", "password"), tls.uri.replace("127.0.0.1", "localhost")];
  const { code, out, err } = await python(join(process.cwd(), "test/server/pymongo_client.py"), ...uris, CERTIFICATE);
  assert.equal(code, 0, err);
  const results = out.trim().split("\n").map((line) => JSON.parse(line) as { name: string; failure: string | null });
  assert.ok(results.length >= 18, out);
  for (const { name, failure } of results) await t.test(name, () => assert.equal(failure, null, failure ?? ""));
  assert.deepEqual(await Promise.all([plain, users, tls].map((server) => server.end())), [0, 0, 0]);
});

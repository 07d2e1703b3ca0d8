// The commands in docs/export.md do what the page says.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { CLI, file, folder, inDatabase, node } from "./export-harness.js";

test("every command of the page runs, and the files that it names are there", () => {
  inDatabase("plant.db", `
    const weather = await db.createCollection("weather", { timeseries: { timeField: "at", metaField: "station" } });
    await weather.insertMany(Array.from({ length: 200 }, (_, n) => ({ at: new Date(Date.UTC(2025, 0, 1) + n * 60_000), station: n % 2 ? "roof" : "cellar", temp: n / 5 })));
  `);
  const page = readFileSync("../docs/export.md", "utf8");
  const commands = [...page.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block]) => block!.trim().split("\n"));
  assert.ok(commands.length >= 10);
  for (const command of commands) {
    assert.match(command, /^npx timepail (export|query|validate) plant\.db/);
    const { status, stderr } = spawnSync("sh", ["-c", command.replace("npx timepail", `"${node}" --no-warnings "${CLI}"`)], { cwd: folder });
    assert.equal(status, 0, `${command}\n${stderr}`);
  }
  for (const name of ["weather.csv", "weather.bson.gz", "hot.ndjson", "means.csv", "backup/plant/system.buckets.weather.bson", "backup/plant/weather.metadata.json", "backup-gz/plant/weather.metadata.json.gz"]) {
    assert.ok(existsSync(file(name)), name);
  }
});

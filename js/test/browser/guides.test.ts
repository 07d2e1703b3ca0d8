// The example of docs/from-dexie.md in real Chromium.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { tab, useBrowser } from "./harness.js";

declare const timepail: typeof import("../../src/index.js");

useBrowser({ "/guides/": join(process.cwd(), "examples/guides") });

test("a Dexie table is copied page by page, including records with equal times", async () => {
  const page = await tab();
  const result = await page.evaluate(async () => {
    const [dexie, guide] = ["/vendor/dexie/dexie.mjs", "/guides/from-dexie.mjs"];
    const { default: Dexie } = (await import(dexie)) as { default: new (name: string) => any };
    const { copyTable } = (await import(guide)) as { copyTable: (...args: unknown[]) => Promise<number> };
    const old = new Dexie("old");
    old.version(1).stores({ points: "++id,at" });
    // Twelve thousand records with the same time are more than a page.
    const at = (n: number): number => (n < 5000 ? n : n < 17_000 ? 5000 : n);
    await old.points.bulkAdd(Array.from({ length: 25_000 }, (_, n) => ({ at: at(n), sensor: `s${n % 3}`, n })));
    const db = await timepail.open("new");
    const points = await db.createCollection("points", { timeseries: { timeField: "at", metaField: "sensor" } });
    const copied = await copyTable(old.points, points, "at", (row: any) => ({ at: new Date(row.at), sensor: row.sensor, n: row.n }));
    const rows = await points.find().toArray();
    const wrong = rows.filter((row) => row["at"].getTime() !== at(row["n"]) || row["sensor"] !== `s${row["n"] % 3}`).length;
    await db.close();
    return { copied, rows: rows.length, numbers: new Set(rows.map((row) => row["n"])).size, wrong };
  });
  assert.deepEqual(result, { copied: 25_000, rows: 25_000, numbers: 25_000, wrong: 0 });
});

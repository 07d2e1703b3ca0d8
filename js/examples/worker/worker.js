// A Worker that takes measurements over HTTP and answers queries. Series are spread over Durable Objects: each keeps its share in its
// own SQLite database, and deletes old measurements when its alarm fires.
//
//   POST /ingest   [{ "series": "roof", "at": 1704067200000, "temp": 21.5 }, ...]   -> { "stored": 1 }
//   GET  /query?series=roof&from=1704067200000&to=1704153600000&every=3600000       -> [{ "at": ..., "count": ..., "avg": ..., "min": ..., "max": ... }]
//   GET  /stats                                                                     -> one object per shard

import { DurableObject } from "cloudflare:workers";
import { open } from "timepail";
import { sqliteStorage } from "timepail/sqlite";

const SHARDS = 4;
const KEEP_SECONDS = 30 * 86_400;
const RETENTION_EVERY_MS = 3_600_000;

export class Shard extends DurableObject {
  #opening;

  /** The collection, opened by the first request that wakes the object. If opening fails, the next request tries again. */
  async #readings() {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return (await this.#opening).collection("readings");
  }

  async #open() {
    const db = await open("shard", { storage: sqliteStorage(this.ctx.storage) });
    const expireAfterSeconds = Number(this.env.KEEP_SECONDS ?? KEEP_SECONDS);
    const [known] = await db.listCollections({ name: "readings" }).toArray();
    if (!known) await db.createCollection("readings", { timeseries: { timeField: "at", metaField: "series" }, expireAfterSeconds });
    else if (known.options.expireAfterSeconds !== expireAfterSeconds) await db.command({ collMod: "readings", expireAfterSeconds });
    return db;
  }

  async ingest(rows) {
    const readings = await this.#readings();
    const { insertedCount } = await readings.insertMany(rows.map(({ at, ...row }) => ({ at: new Date(at), ...row })), { ordered: false });
    await this.#setAlarm();
    return insertedCount;
  }

  async #setAlarm() {
    const due = Date.now() + Number(this.env.RETENTION_EVERY_MS ?? RETENTION_EVERY_MS);
    const set = await this.ctx.storage.getAlarm();
    if (set === null || set > due) await this.ctx.storage.setAlarm(due);
  }

  /** Counts, means and extremes of a series for intervals of `every` milliseconds. */
  async query(series, from, to, every) {
    const readings = await this.#readings();
    const slot = { $subtract: [{ $toLong: "$at" }, { $mod: [{ $toLong: "$at" }, every] }] };
    return readings
      .aggregate([
        { $match: { series, at: { $gte: new Date(from), $lt: new Date(to) } } },
        { $group: { _id: slot, count: { $sum: 1 }, avg: { $avg: "$temp" }, min: { $min: "$temp" }, max: { $max: "$temp" } } },
        { $sort: { _id: 1 } },
        { $project: { _id: 0, at: "$_id", count: 1, avg: 1, min: 1, max: 1 } },
      ])
      .toArray();
  }

  async stats() {
    const readings = await this.#readings();
    return { series: (await readings.distinct("series")).length, readings: await readings.countDocuments(), alarms: (await this.ctx.storage.get("alarms")) ?? 0 };
  }

  /** Deletes old buckets and folds the remaining rows into buckets, so that the object has little to read when it wakes next. */
  async alarm() {
    await this.#readings();
    const db = await this.#opening;
    await db.command({ expire: 1 });
    await db.command({ foldJournals: 1, alive: [] });
    await db.flush();
    await this.ctx.storage.put("alarms", ((await this.ctx.storage.get("alarms")) ?? 0) + 1);
    if ((await db.collection("readings").estimatedDocumentCount()) > 0) await this.#setAlarm();
  }
}

/** The shard of a series. It never changes, so a series is always in the same object. */
function shardOf(series) {
  let hash = 2_166_136_261;
  for (const byte of new TextEncoder().encode(series)) hash = Math.imul(hash ^ byte, 16_777_619);
  return (hash >>> 0) % SHARDS;
}

const shard = (env, number) => env.SHARD.get(env.SHARD.idFromName(`shard-${number}`));

async function ingest(request, env) {
  const rows = await request.json();
  if (!Array.isArray(rows) || !rows.every((row) => typeof row?.series === "string" && Number.isFinite(row.at))) {
    return Response.json({ error: "an array of { series, at, ... } was expected" }, { status: 400 });
  }
  const byShard = Map.groupBy(rows, (row) => shardOf(row.series));
  const counts = await Promise.all([...byShard].map(([number, some]) => shard(env, number).ingest(some)));
  return Response.json({ stored: counts.reduce((sum, count) => sum + count, 0) });
}

async function query(url, env) {
  const series = url.searchParams.get("series");
  const [from, to, every] = ["from", "to", "every"].map((name) => Number(url.searchParams.get(name) ?? NaN));
  if (!series || !(from < to) || !(every >= 1)) return Response.json({ error: "series, from, to and every are needed" }, { status: 400 });
  return Response.json(await shard(env, shardOf(series)).query(series, from, to, every));
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (request.method === "POST" && url.pathname === "/ingest") return ingest(request, env);
    if (request.method === "GET" && url.pathname === "/query") return query(url, env);
    if (request.method === "GET" && url.pathname === "/stats") return Response.json(await Promise.all(Array.from({ length: SHARDS }, (_, number) => shard(env, number).stats())));
    return new Response("There is /ingest, /query and /stats", { status: 404 });
  },
};

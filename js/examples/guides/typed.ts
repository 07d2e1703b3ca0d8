// A collection whose measurements have a TypeScript type.

import type { Database } from "timepail";

interface Reading {
  at: Date;
  station: { id: number; site?: string };
  temp: number;
  gust?: number;
}

/** The readings of one station for a chart, and the means of each site. */
export async function chartOf(db: Database, id: number) {
  const weather = await db.createCollection<Reading>("weather", { timeseries: { timeField: "at", metaField: "station" } });
  // Fields and paths are checked: "station.nr", "tmp" and $gte: 5 for a time do not compile.
  const cursor = weather.find({ "station.id": id, at: { $gte: new Date(0) } }).sort({ at: 1 });
  // The projection names the columns. All of them exist, even if no row is found.
  const { at, temp } = await cursor.project({ _id: 0, at: 1, temp: 1 }).toColumns();
  const warmest = temp.reduce((most, value) => Math.max(most, value), -Infinity);
  // The type of the groups follows from the stages: { _id: { site: string | undefined }, mean: number | null }.
  const means = await weather.aggregate([{ $group: { _id: { site: "$station.site" }, mean: { $avg: "$temp" } } }]).toArray();
  return { at, temp, warmest, means };
}

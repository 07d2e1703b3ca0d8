// What charts and tables of series ask for.

import { latest, window } from "timepail/pipelines";

/** The newest reading of each station, for a table. */
export const newestOfEach = (weather) => weather.aggregate(latest({ time: "at", by: "station" })).toArray();

/** The means of a quarter of an hour, for one line: `plot.setData([at, temp])` with uPlot. */
export async function means(weather, station) {
  const { at, temp } = await weather.aggregate([{ $match: { station } }, ...window({ time: "at", every: "15 minutes", values: ["temp"] })]).toColumns();
  return [at, temp];
}

/** Every reading since `from`, a line for each station: `plot.setData(uPlot.join(tables))`. */
export async function lines(weather, from) {
  const series = await weather.find({ at: { $gte: from } }).sort({ at: 1 }).project({ _id: 0, at: 1, temp: 1, station: 1 }).toColumns({ by: "station" });
  return { labels: series.map(({ key }) => key), tables: series.map(({ columns: { at, temp } }) => [at, temp]) };
}

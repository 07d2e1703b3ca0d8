import { insertArrow, toArrow } from "timepail/arrow";

/** A table of DuckDB-wasm with the measurements of a station. */
export async function toDuckDB(connection, weather, station) {
  const bytes = await toArrow(weather.find({ station }).sort({ at: 1 }));
  await connection.insertArrowFromIPCStream(bytes, { name: "weather", create: true });
}

/** The same over HTTP, for `pyarrow`, pandas, Polars or another page. */
export async function respond(weather, station) {
  const bytes = await toArrow(weather.find({ station }).sort({ at: 1 }));
  return new Response(bytes, { headers: { "content-type": "application/vnd.apache.arrow.stream" } });
}

/** Stores what such a response has, and returns the number of rows. */
export async function load(weather, response) {
  const { insertedCount } = await insertArrow(weather, await response.arrayBuffer());
  return insertedCount;
}

// The tasks by the official driver: node bench/wire/driver.mjs <uri> <points> <folder of the driver>

import { createRequire } from "node:module";
import { times } from "./tasks.mjs";

const [uri, points, folder] = process.argv.slice(2);
const { MongoClient } = createRequire(import.meta.url)(folder);
const client = new MongoClient(uri);
const collection = await client.db("bench").createCollection("points", { timeseries: { timeField: "at", metaField: "station" } });
const processorMs = async () => {
  const { extra_info: used } = await client.db("admin").command({ serverStatus: 1 });
  return (used.user_time_us + used.system_time_us) / 1000;
};
console.log(JSON.stringify(await times(collection, Number(points), processorMs)));
await client.close();

// The tasks in process: node bench/wire/in_process.mjs <file> <points>

// By path: the benchmarks have no package of that name.
import { openFile } from "../../js/dist/file.js";
import { times } from "./tasks.mjs";

const [file, points] = process.argv.slice(2);
await using db = await openFile(file, { generateIds: true });
const collection = await db.createCollection("points", { timeseries: { timeField: "at", metaField: "station" } });
const processorMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
console.log(JSON.stringify(await times(collection, Number(points), processorMs)));

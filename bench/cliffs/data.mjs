// The collection of the pairs: the hosts of the devops use case with some more fields, in timepail and as the typed arrays that loops read.

import { Int32 } from "../../js/node_modules/bson/lib/bson.node.mjs";
import { open } from "../../js/dist/node.js";
import { devopsData } from "../tsbs/devops-data.mjs";
import { generator } from "../tsbs/random.mjs";

const HOSTS = 100;
const ROWS_PER_HOUR = 360;
const FIELDS = ["usage_user", "usage_system", "usage_idle"];
const STATES = ["ok", "warning", "error", "unknown"];

/** Every second row has no `extra`. Every third `mixed` is an int32, as drivers write integers. */
function more(host, { usage_user, usage_system }) {
  const random = generator(`more ${host}`);
  const rows = usage_user.length;
  return {
    level: Int32Array.from(usage_user, (value) => Math.floor(value / 10)),
    state: Array.from({ length: rows }, () => STATES[Math.floor(random.next() ** 2 * STATES.length)]),
    extra: Array.from(usage_system, (value, row) => (row % 2 === 0 ? value : undefined)),
    mixed: Array.from(usage_user, (value, row) => (row % 3 === 0 ? new Int32(Math.round(value)) : value)),
    list: Array.from(usage_user, (user, row) => [user, usage_system[row]]),
    usage: Array.from(usage_user, (user, row) => ({ user, system: usage_system[row], cores: { busy: Math.floor(user / 25) } })),
  };
}

/** Of a host of the collections of small buckets. A null in one of twenty rows closes the bucket before it, and the next number closes its own. */
const withNulls = ({ time, usage_user }) => ({ time, usage_user, battery: Array.from(usage_user, (value, row) => (row % 20 === 7 ? null : value)) });
const HOSTS_OF_SMALL = 10;

/** Of a host of the collection of objects that differ in their fields: every third host has a `queue`. */
const withObjects = ({ time, usage_user, usage_system }, host) => ({
  time,
  io: Array.from(usage_user, (read, row) => ({ read, ...(host % 3 === 0 && { queue: row % 7 }), write: usage_system[row] })),
});

/**
 * `{ collections, series, rows, close }`, where each series has its tags and its columns. `large`, `small`, `live` and `uneven` have some fields of the first
 * hosts: in large buckets, in small ones, in small ones that are only in journals, and in objects.
 */
export async function filled(wanted) {
  const { series: hosts } = devopsData({ hosts: HOSTS, hours: wanted / HOSTS / ROWS_PER_HOUR }).measurements[0];
  const series = hosts.map(({ tags, columns }, host) => {
    const own = Object.fromEntries(["time", ...FIELDS].map((name) => [name, columns[name]]));
    return { tags, columns: { ...own, ...more(host, own) } };
  });
  const db = await open("cliffs", { storage: "memory" });
  const filledWith = async (name, hosts, columnsOf) => {
    const collection = await db.createCollection(name, { timeseries: { timeField: "time", metaField: "tags" } });
    for (const [host, { tags, columns }] of hosts.entries()) await collection.insertColumns(columnsOf(columns, host), { meta: tags });
    return collection;
  };
  const few = series.slice(0, HOSTS_OF_SMALL);
  const points = await filledWith("points", series, (columns) => columns);
  const large = await filledWith("large", few, ({ time, usage_user }) => ({ time, usage_user, battery: usage_user }));
  const small = await filledWith("small", few, withNulls);
  const uneven = await filledWith("uneven", few, withObjects);
  await db.flush();
  const live = await filledWith("live", few, withNulls);
  return { collections: { points, large, small, live, uneven }, series, rows: series.reduce((sum, { columns }) => sum + columns.time.length, 0), close: () => db.close() };
}

// Three thousand pods that come and go, each with twenty to a hundred measurements: counters of processor time, memory, restarts.

import { START, generator } from "../tsbs/random.mjs";

const PODS = 3000;
const MINUTE_MS = 60_000;

function rows() {
  const random = generator("pods");
  const all = [];
  for (let pod = 0; pod < PODS; pod++) {
    const [begin, count] = [random.below(360), 20 + random.below(80)];
    const labels = { namespace: `ns-${pod % 23}`, deployment: `app-${pod % 211}`, pod: `app-${pod % 211}-${random.below(1e6).toString(36)}-${pod}`, node: `node-${random.below(40)}` };
    let [cpu, memory] = [0, 1e8 + random.below(4e8)];
    for (let minute = begin; minute < begin + count; minute++) {
      cpu += random.next() * 30;
      memory = Math.max(1e7, memory + random.normal() * 1e6);
      all.push({ time: new Date(START + minute * MINUTE_MS + random.below(1000)), labels, cpu, memory: Math.round(memory), restarts: random.next() < 0.01 ? 1 : 0 });
    }
  }
  return all.sort((a, b) => a.time - b.time);
}

const span = { $dateTrunc: { date: "$time", unit: "minute", binSize: 5 } };
const SPAN = "(time // 300000) * 300000";
const [from, to] = [300, 305].map((minute) => START + minute * MINUTE_MS);

export const pods = {
  name: "pods",
  meta: "labels",
  rows,
  columns: { time: "bigint", namespace: "varchar", deployment: "varchar", pod: "varchar", node: "varchar", cpu: "double", memory: "bigint", restarts: "integer" },
  queries: {
    "memory by namespace and five minutes": {
      pipeline: [{ $group: { _id: { namespace: "$labels.namespace", span }, memory: { $avg: "$memory" } } }],
      sql: `select namespace, ${SPAN} as span, avg(memory) as memory from pods group by all`,
      keys: ["namespace", "span"],
    },
    "ten busiest": {
      pipeline: [{ $group: { _id: "$labels.pod", cpu: { $max: "$cpu" } } }, { $sort: { cpu: -1 } }, { $limit: 10 }],
      sql: "select pod as _id, max(cpu) as cpu from pods group by all order by cpu desc limit 10",
    },
    "memory of one deployment": {
      pipeline: [{ $match: { "labels.deployment": "app-7" } }, { $group: { _id: span, memory: { $sum: "$memory" } } }],
      sql: `select ${SPAN} as _id, sum(memory)::double as memory from pods where deployment = 'app-7' group by all`,
    },
    "mean rate by namespace": {
      pipeline: [
        { $setWindowFields: { partitionBy: "$labels", sortBy: { time: 1 }, output: { rate: { $derivative: { input: "$cpu", unit: "second" }, window: { documents: [-1, 0] } } } } },
        { $group: { _id: "$labels.namespace", rate: { $avg: "$rate" } } },
      ],
      sql: "select namespace as _id, avg(rate) as rate from (select namespace, (cpu - lag(cpu) over series) / ((time - lag(time) over series) / 1000.0) as rate from pods window series as (partition by pod order by time)) group by all",
    },
    "restarts by namespace and deployment": {
      pipeline: [{ $match: { restarts: { $gt: 0 } } }, { $group: { _id: { namespace: "$labels.namespace", deployment: "$labels.deployment" }, n: { $sum: "$restarts" } } }],
      sql: "select namespace, deployment, sum(restarts)::double as n from pods where restarts > 0 group by all",
      keys: ["namespace", "deployment"],
    },
    "increase of each": {
      pipeline: [{ $sort: { labels: 1, time: 1 } }, { $group: { _id: "$labels.pod", first: { $first: "$cpu" }, last: { $last: "$cpu" } } }, { $project: { increase: { $subtract: ["$last", "$first"] } } }],
      sql: "select pod as _id, last(cpu order by time) - first(cpu order by time) as increase from pods group by all",
    },
    "pods of each node": {
      pipeline: [{ $group: { _id: { node: "$labels.node", pod: "$labels.pod" } } }, { $group: { _id: "$_id.node", n: { $sum: 1 } } }],
      sql: "select node as _id, count(distinct pod)::integer as n from pods group by all",
    },
    "five minutes by node": {
      pipeline: [{ $match: { time: { $gte: new Date(from), $lt: new Date(to) } } }, { $group: { _id: "$labels.node", memory: { $sum: "$memory" } } }],
      sql: `select node as _id, sum(memory)::double as memory from pods where time >= ${from} and time < ${to} group by all`,
    },
    "by memory": {
      pipeline: [{ $group: { _id: { $trunc: { $divide: ["$memory", 1e8] } }, n: { $sum: 1 } } }],
      sql: "select trunc(memory / 1e8) as _id, count(*)::integer as n from pods group by all",
    },
    "greatest memory by a pattern of namespaces": {
      pipeline: [{ $match: { "labels.namespace": /^ns-1/ } }, { $group: { _id: "$labels.namespace", memory: { $max: "$memory" } } }],
      sql: "select namespace as _id, max(memory)::double as memory from pods where namespace like 'ns-1%' group by all",
    },
  },
};

// Example queries for the collection that is shown.

import { toLines, toSource } from "./format.js";

const DAY_MS = 86_400_000;

/** `[{ title, text }]` for a collection; the console begins with the first. */
export function examplesOf(name, { timeseries, series, values, fields }, extent) {
  const { timeField, metaField } = timeseries;
  const from = `db.collection(${JSON.stringify(name)})`;
  const [field = timeField] = Object.keys(fields);
  const one = metaField ? { [metaField]: (values ? values.get(series[0]) : series[0]) ?? null } : {};
  const lastDay = extent ? { [timeField]: { $gte: new Date(Math.floor((extent.last - DAY_MS) / 3_600_000) * 3_600_000) } } : {};
  const day = { $dateTrunc: { date: `$${timeField}`, unit: "day" } };
  const pipeline = [
    { $group: { _id: { ...(metaField && { series: `$${metaField}` }), day }, mean: { $avg: `$${field}` }, count: { $sum: 1 } } },
    { $sort: { "_id.day": -1 } },
    { $limit: 20 },
  ];
  const top = [{ $group: { _id: metaField ? `$${metaField}` : null, top: { $topN: topOf(timeField, field) } } }];
  return [
    { title: "The newest", text: `${from}\n  .find(${toSource(one)})\n  .sort(${toSource({ [timeField]: -1 })})\n  .limit(10)` },
    { title: "Means by day", text: `${from}.aggregate(${toLines(pipeline)})` },
    { title: "The three largest", text: `${from}.aggregate(${toLines(top)})` },
    { title: "Count for the last day", text: `${from}.countDocuments(${toSource({ ...one, ...lastDay })})` },
    { title: "A command", text: `db.command(${toSource({ collStats: name })})` },
  ];
}

function topOf(timeField, field) {
  return { n: 3, sortBy: { [field]: -1 }, output: { [timeField]: `$${timeField}`, [field]: `$${field}` } };
}

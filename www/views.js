// The ways to read a range for a chart: the pipeline of each, as code to show and as columns to draw.

import { number, toLines, toSource } from "./format.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const POINTS = 1000;

/**
 * For each name, a function that takes `{ collection, filter, dataset, spanMs }` and returns `{ code, read, sample }`. `read` resolves
 * to `{ rows, panels, note }`, with the columns of each field in `panels`. `sample` is a single call, if `code` is more than
 * one call.
 */
export const views = { points, line, means };

function points({ collection, filter, dataset }) {
  const { timeField } = dataset.timeseries;
  const sort = { [timeField]: 1 };
  const code = codeOf(collection, `.find(${toSource(filter)})`, `.sort(${toSource(sort)})`);
  const read = async () => {
    const columns = await collection.find(filter).sort(sort).toColumns();
    return { rows: columns[timeField]?.length ?? 0, panels: Object.keys(dataset.fields).map(() => columns), note: "" };
  };
  return { code, read };
}

function line({ collection, filter, dataset }) {
  const { timeField, metaField } = dataset.timeseries;
  const fields = Object.keys(dataset.fields);
  const match = Object.keys(filter).length > 0 ? [{ $match: filter }] : [];
  const pipelineOf = (field) => [
    ...match,
    { $project: { _id: 0, [timeField]: 1, ...(metaField && { [metaField]: 1 }), [field]: 1 } },
    { $downsample: { field, points: POINTS, sortBy: { [timeField]: 1 }, ...(metaField && { partitionBy: `$${metaField}` }) } },
  ];
  const read = async () => {
    const panels = await Promise.all(fields.map((field) => collection.aggregate(pipelineOf(field)).toColumns()));
    const rows = panels.reduce((sum, columns) => sum + (columns[timeField]?.length ?? 0), 0);
    return { rows, panels, note: `at most ${number(POINTS)} of each line, picked by its shape` };
  };
  if (fields.length === 1) return { code: codeOf(collection, ...stagesOf(pipelineOf(fields[0]))), read };
  // Run one query per field, because the rows that show the temperature differ from those that show the humidity.
  const stages = stagesOf(pipelineOf("FIELD")).map((text) => text.replaceAll('"FIELD"', "field").replaceAll("FIELD:", "[field]:"));
  const one = codeOf(collection, ...stages).replace("const columns = await db", "const read = (field) => db");
  const sample = codeOf(collection, ...stagesOf(pipelineOf(fields[0])));
  return { sample, code: `${one.replaceAll("field: field", "field")}\nconst columns = await Promise.all(${toSource(fields)}.map(read));`, read };
}

function means({ collection, filter, dataset, spanMs }) {
  const { timeField, metaField } = dataset.timeseries;
  const bin = binOf(spanMs);
  const fields = Object.keys(dataset.fields);
  const key = { ...(metaField && { series: `$${metaField}` }), bin: { $dateTrunc: { date: `$${timeField}`, ...bin } } };
  const $group = { _id: key };
  for (const field of fields) {
    Object.assign($group, { [field]: { $avg: `$${field}` }, [low(field)]: { $min: `$${field}` }, [high(field)]: { $max: `$${field}` } });
  }
  const kept = Object.fromEntries(fields.flatMap((field) => [field, low(field), high(field)]).map((field) => [field, 1]));
  const $project = { _id: 0, [timeField]: "$_id.bin", ...(metaField && { [metaField]: "$_id.series" }), ...kept };
  const match = Object.keys(filter).length > 0 ? [{ $match: filter }] : [];
  const pipeline = [...match, { $group }, { $sort: { "_id.bin": 1 } }, { $project }];
  const code = codeOf(collection, ...stagesOf(pipeline));
  const read = async () => {
    const columns = await collection.aggregate(pipeline).toColumns();
    const rows = columns[timeField]?.length ?? 0;
    const bins = bin.binSize ? `${bin.binSize} ${bin.unit}s` : bin.unit;
    return { rows, panels: fields.map(() => columns), note: `mean, minimum and maximum by ${bins}` };
  };
  return { code, read };
}

/** The names of the columns with the lowest and the highest value, beside the mean of a field. */
export const low = (field) => `least_${field}`;
export const high = (field) => `greatest_${field}`;

/** The bin length with which a chart of `spanMs` has a few hundred bins. */
function binOf(spanMs) {
  if (spanMs <= HOUR_MS) return { unit: "second", binSize: 10 };
  if (spanMs <= 6 * HOUR_MS) return { unit: "minute" };
  if (spanMs <= 3 * DAY_MS) return { unit: "minute", binSize: 10 };
  if (spanMs <= 45 * DAY_MS) return { unit: "hour" };
  return spanMs <= 1200 * DAY_MS ? { unit: "day" } : { unit: "month" };
}

const stagesOf = (pipeline) => [".aggregate([", ...pipeline.map((stage) => `  ${toLines(stage, "    ")},`), "])"];

function codeOf({ collectionName }, ...lines) {
  return ["const columns = await db", `.collection("${collectionName}")`, ...lines, ".toColumns();"].join("\n  ");
}

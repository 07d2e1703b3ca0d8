// Makes the reply of explain readable: figures of what was read, and the steps in order of execution.

import { number, toLines, toSource } from "./format.js";
import { element } from "./workspace.js";

const ACCESS = {
  COLLSCAN: "Read all buckets",
  CLUSTERED_IXSCAN: "Read buckets by their ids, which start with a time",
  IXSCAN: "Scan an index",
  FETCH: "Read the buckets that it names",
  EOF: "Nothing can match",
  TS_MODIFY: "Change measurements in buckets",
  DELETE: "Delete whole buckets",
  UPDATE: "Update buckets",
};
const STAGES = {
  $_internalUnpackBucket: "Unpack",
  $_internalBoundedSort: "Sort bucket by bucket",
  $_internalSetWindowFields: "Compute over windows",
  $_internalDensify: "Fill time gaps",
};

/** `{ figures: [[name, value]], steps: [{ name, details, out }] }` of a reply of `explain`. */
export function planOf(reply) {
  const cursor = reply.stages?.find((stage) => stage.$cursor)?.$cursor ?? reply;
  const stats = cursor.executionStats ?? {};
  const access = accessSteps(stats.executionStages ?? cursor.queryPlanner?.winningPlan);
  const later = (reply.stages ?? []).filter((stage) => !stage.$cursor).map(stageStep);
  const unpack = reply.stages?.find((stage) => stage.$_internalUnpackBucket) ?? stats.executionStages ?? {};
  const figures = [
    ["Index entries", stats.totalKeysExamined],
    ["Buckets read", stats.totalDocsExamined],
    ["Buckets unpacked", unpack.nBucketsUnpacked],
    ["Measurements examined", unpack.nMeasurementsExamined ?? unpack.nMeasurementsMatched],
    ["Returned", later.at(-1)?.out ?? stats.nReturned],
  ];
  return { figures: figures.filter(([, value]) => value !== undefined), steps: [...access, ...later] };
}

/** The stages of a plan, the innermost first. */
function accessSteps(stage) {
  if (!stage) return [];
  const { inputStage, stage: name, indexName, indexBounds, filter, minRecord, maxRecord, nReturned } = stage;
  const details = [];
  if (indexName) details.push(["index", indexName]);
  const bounds = Object.entries(indexBounds ?? {}).filter(([, [bound]]) => bound !== "[MinKey, MaxKey]");
  for (const [field, bound] of bounds) details.push([`bounds of ${field}`, bound.join(", ")]);
  if (minRecord !== undefined || maxRecord !== undefined) details.push(["ids", `${minRecord ?? "from the first"} to ${maxRecord ?? "the last"}`]);
  if (filter && name !== "TS_MODIFY") details.push(["keep buckets with", toSource(filter)]);
  if (stage.residualFilter) details.push(["measurements with", toSource(stage.residualFilter)]);
  return [...accessSteps(inputStage), { name: ACCESS[name] ?? name, code: name, details, out: nReturned }];
}

function stageStep(stage) {
  const [code, argument] = Object.entries(stage)[0];
  const details = [];
  if (code === "$_internalUnpackBucket") {
    if (argument.include) details.push(["columns", argument.include.join(", ") || "none"]);
    if (argument.wholeBucketFilter) details.push(["whole buckets with", toSource(argument.wholeBucketFilter)]);
    if (argument.eventFilter) details.push(["keep measurements with", toSource(argument.eventFilter)]);
  } else details.push(["", toSource(argument.sortKey ?? argument)]);
  return { name: STAGES[code] ?? code, code, details, out: stage.nReturned };
}

/** The plan as elements: figures, steps, and the whole document, which is collapsed at first. */
export function showPlan(reply) {
  const { figures, steps } = planOf(reply);
  const tiles = figures.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: number(Number(value)) })));
  const items = steps.map(({ name, code, details, out }) => {
    const head = element("p", {}, element("b", { textContent: name }));
    if (code !== name) head.append(" ", element("code", { className: "quiet", textContent: code }));
    if (out !== undefined) head.append(element("span", { className: "out quiet figures", textContent: `${number(Number(out))} out` }));
    const lines = details.map(([what, text]) => element("p", { className: "quiet" }, what && `${what} `, element("code", { textContent: text })));
    return element("li", {}, head, ...lines);
  });
  const whole = element("pre", { className: "code", tabIndex: 0, textContent: toLines(reply) });
  return [
    element("dl", { className: "tiles plan-figures" }, ...tiles),
    element("ol", { className: "plan" }, ...items),
    element("details", {}, element("summary", { textContent: "Complete reply" }), whole),
  ];
}

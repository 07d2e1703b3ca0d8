// Creates a collection from a file. The page shows the guessed options, which you can change, and then imports the file.

import { show } from "./collection.js";
import { datasets } from "./datasets.js";
import { inTurn, say, unlessBusy } from "./feedback.js";
import { bytes, duration, number, short } from "./format.js";
import { timeOf, valueOf } from "./guess.js";
import { follow } from "./progress.js";
import { inspect, readAll } from "./source.js";
import { tableOf } from "./table.js";
import { $, element, lastOf, workspace } from "./workspace.js";

const PREVIEW_ROWS = 5;
const PROBLEMS_MAX = 20;
const KINDS = { ",": "by commas", ";": "by semicolons", "\t": "by tabs", "|": "by bars" };
/** The chosen file, and the description of its beginning. */
let chosen;

/** Shows the beginning of a file and the guessed options. */
export async function lookAt(file) {
  const source = await inspect(file);
  chosen = { file, source };
  showProblems([], 0);
  showDone(false);
  const separated = source.delimiter ? `CSV, separated ${KINDS[source.delimiter]}` : source.kind;
  $("own-title").textContent = file.name;
  $("own-about").textContent = `${bytes(file.size)}, ${separated}, ${number(source.names.length)} columns`;
  $("own-name").value = nameFor(file.name, source);
  const options = (none) => [...none, ...source.names.map((name) => element("option", { value: name, textContent: name }))];
  $("own-time").replaceChildren(...options(source.timeField ? [] : [element("option", { value: "", textContent: "choose …" })]));
  $("own-time").value = source.timeField ?? "";
  $("own-meta").replaceChildren(...options([element("option", { value: "", textContent: "none: one series" })]));
  $("own-meta").value = source.metaField ?? "";
  showPreview(source);
  $("own").hidden = false;
  $("own-name").focus();
}

function showPreview({ names, records, types }) {
  const rows = records.slice(0, PREVIEW_ROWS).map(({ cells }) => Object.fromEntries(names.map((name, i) => [name, valueOf(cells[i])])));
  const table = tableOf(rows, "The first rows");
  for (const head of table.querySelectorAll("th")) head.append(element("small", { textContent: types[names.indexOf(head.textContent)] }));
  $("own-preview").replaceChildren(table);
}

/** A collection name, derived from that of the file. It is unused, or belongs to an earlier import of a file with the same columns. */
function nameFor(fileName, source) {
  const base = fileName.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "_").replace(/^_+|_+$/g, "").toLowerCase() || "own";
  let name = base;
  for (let n = 2; Object.hasOwn(datasets, name) && !isImport(name, optionsOf(source, source.timeField, source.metaField)); n++) name = `${base}_${n}`;
  return name;
}

/** Options of a collection for a file. A line that is imported again is the same measurement, because all of its cells identify it. */
function optionsOf({ names, timeseries }, timeField, metaField) {
  const by = names.filter((name) => name !== timeField && name !== metaField && /^[^.$][^.]*$/.test(name));
  return { timeseries: { timeField, ...(metaField && { metaField }), ...timeseries }, dedupe: { by, keep: "last" } };
}

/** True for a collection that was made for files with the same columns. */
function isImport(name, { timeseries, dedupe }) {
  const there = datasets[name];
  return there?.timeseries.timeField === timeseries.timeField && there.timeseries.metaField === timeseries.metaField && there.dedupe?.by.join() === dedupe.by.join();
}

async function importFile() {
  const { file, source } = chosen;
  const name = $("own-name").value.trim();
  const [timeField, metaField] = [$("own-time").value, $("own-meta").value];
  const options = optionsOf(source, timeField, metaField);
  const isAgain = isImport(name, options);
  if (Object.hasOwn(datasets, name) && !isAgain) throw new Error(`There is a collection “${name}” already; choose another name.`);
  if (timeField === metaField) throw new Error("The time and the series cannot be the same column.");
  const collection = isAgain ? workspace.db.collection(name) : await workspace.db.createCollection(name, options);
  const before = isAgain ? await collection.countDocuments() : 0;
  const total = { rows: 0, ms: 0, problems: [], refused: 0 };
  const refuse = (line, problem) => ++total.refused <= PROBLEMS_MAX && total.problems.push({ line, problem });
  const { cancelled } = await follow("Bytes of the file read", async (signal, progress) => {
    for await (const { records, problems, bytes: read } of readAll(file, source, signal)) {
      for (const { line, problem } of problems) refuse(line, problem);
      await insert(collection, columnsOf(records, source.names, timeField, metaField, refuse), total, refuse);
      progress(read / file.size, `${number(total.rows)} rows${total.ms > 0 ? ` at ${short((total.rows / total.ms) * 1000)}/s` : ""}`);
    }
  });
  await workspace.db.flush();
  showProblems(total.problems, total.refused);
  if (total.refused === 0) close();
  else showDone(true);
  if (total.rows === 0) {
    if (!isAgain) await workspace.db.dropCollection(name);
    throw new Error(`No row of ${file.name} could be stored.`);
  }
  lastOf(name).insert = total;
  const known = before + total.rows - (await collection.countDocuments());
  say(`${cancelled ? "Cancelled: " : ""}${number(total.rows)} rows inserted in ${duration(total.ms)}${known > 0 ? `, ${number(known)} of them known already` : ""}${total.refused > 0 ? `, ${number(total.refused)} refused` : ""}.`);
  await show(name);
}

/** Records as columns, without those that have no time. */
function columnsOf(records, names, timeField, metaField, refuse) {
  const timePlace = names.indexOf(timeField);
  const kept = [];
  const times = [];
  for (const record of records) {
    const time = timeOf(record.cells[timePlace]);
    if (Number.isNaN(time)) refuse(record.line, `no time in “${record.cells[timePlace] ?? ""}”`);
    else {
      kept.push(record);
      times.push(time);
    }
  }
  const columns = { [timeField]: times };
  for (const [place, name] of names.entries()) {
    if (place === timePlace) continue;
    // The name of a series stays as it is written: 007 is not a number there.
    const read = name === metaField ? (cell) => (typeof cell === "string" ? cell.trim() || undefined : (cell ?? undefined)) : valueOf;
    columns[name] = kept.map(({ cells }) => read(cells[place]));
  }
  return { columns, kept };
}

async function insert(collection, { columns, kept }, total, refuse) {
  if (kept.length === 0) return;
  const start = performance.now();
  try {
    total.rows += (await collection.insertColumns(columns, { ordered: false, timeUnit: "ms" })).insertedCount;
  } catch (error) {
    if (!error.writeErrors) throw error;
    total.rows += error.insertedCount;
    for (const { index, errmsg } of error.writeErrors) refuse(kept[index].line, errmsg);
  } finally {
    total.ms += performance.now() - start;
  }
}

function showProblems(problems, count) {
  const items = problems.sort((a, b) => a.line - b.line).map(({ line, problem }) => element("li", { textContent: `Line ${number(line)}: ${problem}` }));
  if (count > problems.length) items.push(element("li", { textContent: `and ${number(count - problems.length)} more` }));
  $("own-problems").replaceChildren(...items);
  $("own-problems").hidden = count === 0;
}

/** After an import, shows only the refused lines. */
function showDone(isDone) {
  $("own").classList.toggle("done", isDone);
  $("own-discard").textContent = isDone ? "Close" : "Discard";
}

function close() {
  chosen = undefined;
  $("own").hidden = true;
}

export function setUpOwn() {
  const take = (file) => file && inTurn(() => lookAt(file));
  $("file").addEventListener("change", () => {
    take($("file").files[0]);
    $("file").value = ""; // The same file may be chosen again.
  });
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.dataset.dropping = "";
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && delete document.body.dataset.dropping);
  addEventListener("drop", (event) => {
    delete document.body.dataset.dropping;
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  $("own-form").addEventListener("submit", (event) => {
    event.preventDefault();
    unlessBusy(importFile);
  });
  $("own-discard").addEventListener("click", close);
}

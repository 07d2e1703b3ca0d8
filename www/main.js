// Opens the database and connects the controls of the page with it.

import { open } from "timepail";
import { showBuckets } from "./buckets.js";
import { clear } from "./chart.js";
import { datasets } from "./datasets.js";
import { inTurn, say, showError, unlessBusy } from "./feedback.js";
import { duration, isoDay, number, short, showCode, toSource } from "./format.js";
import { chooseRange, extentOf, prepareQuery, runQuery } from "./query.js";
import { addSensorPoints, FIRST_TIME } from "./sensors.js";
import { showLast, showStats } from "./stats.js";

const $ = (id) => document.getElementById(id);
const all = (selector) => document.querySelectorAll(selector);

let db;
/** The collection that is shown, and the times of its oldest and newest measurement. */
let chosen = location.hash.slice(1) in datasets ? location.hash.slice(1) : "weather";
let extent = null;
/** By collection: how the last insert and the last query went. */
const last = Object.fromEntries(Object.keys(datasets).map((name) => [name, {}]));

async function start() {
  db = await open("demo");
  await createCollections();
  await show(chosen);
}

/** Creating a collection that exists already with the same options does nothing. */
async function createCollections() {
  for (const [name, { timeseries }] of Object.entries(datasets)) await db.createCollection(name, { timeseries });
}

// ------------------------------------------------------------------------------------------------------------- showing

/** Shows a collection: tiles, query and buckets. */
async function show(name) {
  chosen = name;
  history.replaceState(null, "", `#${name}`);
  document.querySelector(`[name=collection][value=${name}]`).checked = true;
  const dataset = datasets[name];
  const collection = db.collection(name);
  $("about").textContent = dataset.about;
  extent = await extentOf(collection, dataset.timeseries);
  const isEmpty = extent === null;
  prepareQuery(dataset, extent, name === "sensors" ? 1 : "all");
  prepareRetention();
  for (const section of all(".query form, .result, .inside, #retention")) section.classList.toggle("empty-now", isEmpty);
  $("empty").hidden = !isEmpty;
  if (isEmpty) {
    clear();
    const cure = name === "sensors" ? "Add some points" : `Load the ${name}`;
    $("empty").textContent = `The collection “${name}” is empty. ${cure} above to see it here.`;
  } else await query();
  await showStats(db, name, dataset, last[name]);
  await showBuckets(db, name, dataset);
}

async function query() {
  last[chosen].query = await runQuery(db.collection(chosen), datasets[chosen], extent);
  showLast(last[chosen]);
}

function addTabs() {
  for (const [name, { title }] of Object.entries(datasets)) {
    const label = document.createElement("label");
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "collection", value: name });
    radio.addEventListener("change", () => inTurn(() => show(name)));
    label.append(radio, title);
    $("collections").append(label);
  }
}

// ------------------------------------------------------------------------------------------------------------- filling

async function load(name) {
  const collection = db.collection(name);
  const documents = await datasets[name].documents();
  await collection.deleteMany({}); // A second click replaces: nothing keeps equal measurements from being stored twice.
  const start = performance.now();
  const { insertedCount } = await collection.insertMany(documents, { ordered: false });
  last[name].insert = { rows: insertedCount, ms: performance.now() - start };
  await db.flush(); // Stored they are already; this makes buckets of the journal now, so that the page can show them.
  say(`${number(insertedCount)} measurements inserted in ${duration(last[name].insert.ms)}.`);
  await show(name);
}

async function addSensors(total) {
  const collection = db.collection("sensors");
  const newest = await collection.findOne({}, { sort: { at: -1 } });
  const stop = new AbortController();
  const cancel = () => stop.abort();
  $("cancel").addEventListener("click", cancel);
  const showProgress = ({ rows, ms }) => {
    $("progress-bar").value = rows / total;
    $("progress-text").textContent = `${number(rows)}${ms > 0 ? ` at ${short((rows / ms) * 1000)} points/s` : ""}`;
  };
  showProgress({ rows: 0, ms: 0 });
  $("progress").hidden = false;
  try {
    const result = await addSensorPoints(collection, {
      total,
      start: newest ? newest.at.getTime() + 10_000 : FIRST_TIME,
      signal: stop.signal,
      onBatch: showProgress,
    });
    last.sensors.insert = result;
    await db.flush();
    say(`${stop.signal.aborted ? "Cancelled: " : ""}${number(result.rows)} points inserted in ${duration(result.ms)}.`);
  } finally {
    $("cancel").removeEventListener("click", cancel);
    if (document.activeElement === $("cancel")) document.querySelector("[data-add]").focus();
    $("progress").hidden = true;
  }
  await show("sensors");
}

// ------------------------------------------------------------------------------------------------------------ removing

function retentionFilter() {
  return { at: { $lt: $("before").valueAsDate } };
}

function showRetentionCode() {
  if ($("before").value) showCode($("delete-code"), `await db.collection("${chosen}").deleteMany(${toSource(retentionFilter())});`);
}

function prepareRetention() {
  $("deleted").textContent = "";
  $("before").value = extent ? isoDay(new Date((extent.first.getTime() + extent.last.getTime()) / 2)) : "";
  showRetentionCode();
}

async function deleteOlder() {
  const start = performance.now();
  const { deletedCount } = await db.collection(chosen).deleteMany(retentionFilter());
  const ms = performance.now() - start;
  await show(chosen);
  $("deleted").textContent = `${number(deletedCount)} measurements deleted in ${duration(ms)}.`;
}

async function dropEverything() {
  await db.dropDatabase();
  await createCollections();
  for (const name of Object.keys(last)) last[name] = {};
  await show(chosen);
  say("Everything was dropped.");
}

// ------------------------------------------------------------------------------------------------------------ controls

for (const button of all("[data-load]")) button.addEventListener("click", () => unlessBusy(() => load(button.dataset.load)));
for (const button of all("[data-add]")) button.addEventListener("click", () => unlessBusy(() => addSensors(Number(button.dataset.add))));
for (const button of all("[data-days]")) {
  button.addEventListener("click", () => inTurn(() => (chooseRange(extent, button.dataset.days), query())));
}
for (const button of all("[data-copy]")) {
  button.addEventListener("click", () => navigator.clipboard.writeText($(button.dataset.copy).textContent).then(() => say("Copied."), showError));
}

$("query").addEventListener("submit", (event) => {
  event.preventDefault();
  inTurn(query);
});
$("retention").addEventListener("submit", (event) => {
  event.preventDefault();
  unlessBusy(deleteOlder);
});
$("series").addEventListener("change", () => inTurn(query));
$("before").addEventListener("input", showRetentionCode);
$("drop").addEventListener("click", () => $("drop-dialog").showModal());
$("drop-form").addEventListener("submit", ({ submitter }) => {
  if (submitter.value === "drop") unlessBusy(dropEverything);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => extent && inTurn(query));

showCode($("sample"), $("sample").textContent);
addTabs();
inTurn(start);

// Deletes data: measurements older than a date, one collection, or everything.

import { onShow, show } from "./collection.js";
import { datasets } from "./datasets.js";
import { say, unlessBusy } from "./feedback.js";
import { duration, isoDay, number, showCode, toSource } from "./format.js";
import { $, forgetRuns, workspace } from "./workspace.js";

function retentionFilter() {
  const { timeField } = datasets[workspace.chosen].timeseries;
  return { [timeField]: { $lt: $("before").valueAsDate } };
}

function showRetentionCode() {
  if ($("before").value) showCode($("delete-code"), `await db.collection("${workspace.chosen}").deleteMany(${toSource(retentionFilter())});`);
}

function prepare(name, { own }) {
  const { extent } = workspace;
  $("deleted").textContent = "";
  $("before").value = extent ? isoDay(new Date((extent.first.getTime() + extent.last.getTime()) / 2)) : "";
  $("drop-one").hidden = !own;
  $("drop-one").textContent = `Drop “${name}”`;
  showRetentionCode();
}

async function deleteOlder() {
  const start = performance.now();
  const { deletedCount } = await workspace.db.collection(workspace.chosen).deleteMany(retentionFilter());
  const ms = performance.now() - start;
  await show();
  $("deleted").textContent = `${number(deletedCount)} measurements deleted in ${duration(ms)}.`;
}

async function dropOne() {
  const name = workspace.chosen;
  await workspace.db.dropCollection(name);
  await show();
  say(`“${name}” was dropped.`);
}

async function dropEverything() {
  await workspace.db.dropDatabase();
  forgetRuns();
  await show();
  say("All collections were dropped.");
}

/** Asks for confirmation before something is deleted; resolves to the answer. */
function confirmed(title, text) {
  $("drop-title").textContent = title;
  $("drop-text").textContent = text;
  $("drop-yes").textContent = title.replace("?", "");
  $("drop-dialog").showModal();
  return new Promise((resolve) => {
    $("drop-form").onsubmit = ({ submitter }) => resolve(submitter.value === "drop");
    $("drop-dialog").onclose = () => resolve(false);
  });
}

export function setUpRemove() {
  onShow(prepare);
  $("before").addEventListener("input", showRetentionCode);
  $("retention").addEventListener("submit", (event) => {
    event.preventDefault();
    unlessBusy(deleteOlder);
  });
  $("drop").addEventListener("click", async () => {
    const text = "This deletes all collections in the database demo. You cannot undo it.";
    if (await confirmed("Drop everything?", text)) unlessBusy(dropEverything);
  });
  $("drop-one").addEventListener("click", async () => {
    const text = `This deletes the collection “${workspace.chosen}” and its measurements. You cannot undo it.`;
    if (await confirmed(`Drop “${workspace.chosen}”?`, text)) unlessBusy(dropOne);
  });
}

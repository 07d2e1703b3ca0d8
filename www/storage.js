// Shows the storage use of the browser: how much of the quota is used, and how much each collection takes.

import { onShow } from "./collection.js";
import { ageOf, budgetOf } from "./retention.js";
import { say, showError } from "./feedback.js";
import { bytes, number } from "./format.js";
import { $, element, workspace } from "./workspace.js";

/** Shows the meter and the table as they are now. */
export async function showStorage() {
  const infos = await workspace.db.listCollections({ type: "timeseries" }).toArray();
  const rows = await Promise.all(infos.map(async ({ name, options }) => ({ name, options, stats: await workspace.db.command({ collStats: name }) })));
  const largest = Math.max(1, ...rows.map(({ stats }) => stats.totalSize));
  $("storage-rows").replaceChildren(...rows.map((row) => line(row, largest)));
  await showUsage();
}

function line({ name, options, stats }, largest) {
  const bar = element("span", { className: "bar" });
  bar.style.setProperty("--level", stats.totalSize / largest);
  const cells = [
    number(stats.timeseries.numMeasurements),
    number(stats.timeseries.bucketCount),
    bytes(stats.storageSize),
    bytes(stats.totalIndexSize),
  ].map((textContent) => element("td", { textContent, className: "number" }));
  const limits = [ageOf(options), budgetOf(options)].map((textContent) => element("td", { textContent }));
  return element("tr", {}, element("th", { scope: "row" }, name, bar), ...cells, ...limits);
}

/** Shows the meter. Browsers report their usage roughly, or not at all. */
async function showUsage() {
  const { usage, quota } = (await navigator.storage?.estimate?.()) ?? {};
  $("usage").hidden = quota === undefined;
  if (quota === undefined) return void ($("usage-text").textContent = "This browser does not report how much it stores.");
  $("usage").value = usage / quota;
  $("usage-text").textContent = `About ${bytes(usage)} of the ${bytes(quota)} that this browser allows`;
  if (navigator.storage.persisted) showPersistence(await navigator.storage.persisted());
}

function showPersistence(isPersistent) {
  $("persist").hidden = isPersistent;
  $("persist-text").textContent = isPersistent
    ? "The browser keeps the data until you delete it."
    : "The browser may delete the data when it runs out of space.";
}

async function persist() {
  const isGranted = await navigator.storage.persist();
  showPersistence(isGranted);
  say(isGranted ? "The browser keeps this data." : "The browser did not agree. It does for sites that you use often or install.");
}

export function setUpStorage() {
  onShow(showStorage);
  $("persist").addEventListener("click", () => persist().catch(showError));
}

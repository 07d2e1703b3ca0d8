// The section that shows a collection: tabs, tiles, the query and the buckets.

import { showBuckets } from "./buckets.js";
import { clear } from "./chart.js";
import { createCollections, datasets } from "./datasets.js";
import { discover } from "./discover.js";
import { inTurn } from "./feedback.js";
import { chooseRange, extentOf, prepareQuery, runQuery } from "./query.js";
import { showLast, showStats } from "./stats.js";
import { $, all, element, lastOf, workspace } from "./workspace.js";

const listeners = [];

/** Calls `listener(name, dataset)` after each time that a collection is shown, also if it was shown before. */
export const onShow = (listener) => listeners.push(listener);

/** Shows a collection: tiles, query and buckets. If it no longer exists, shows the first one. */
export async function show(name = workspace.chosen) {
  const { db } = workspace;
  await discover(db);
  if (!Object.hasOwn(datasets, name)) name = Object.keys(datasets)[0];
  await createCollections(db); // Another tab may have dropped them.
  workspace.chosen = name;
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  showTabs();
  const dataset = datasets[name];
  $("about").textContent = dataset.about;
  workspace.extent = await extentOf(db.collection(name), dataset.timeseries);
  const isEmpty = workspace.extent === null;
  prepareQuery(dataset, workspace.extent, dataset.days ?? "all");
  for (const section of all(".query form, .result, .inside, #retention")) section.classList.toggle("empty-now", isEmpty);
  $("empty").hidden = !isEmpty;
  if (isEmpty) {
    clear();
    const cure = dataset.cure ?? `Load the ${name} above to see it here`;
    $("empty").textContent = `The collection “${dataset.title.toLowerCase() === name ? name : dataset.title}” is empty. ${cure}.`;
  } else await query();
  await showStats(db, name, dataset, lastOf(name));
  await showBuckets(db, name, dataset);
  for (const listener of listeners) await listener(name, dataset);
}

async function query() {
  const { db, chosen, extent } = workspace;
  lastOf(chosen).query = await runQuery(db.collection(chosen), datasets[chosen], extent);
  showLast(lastOf(chosen));
}

function showTabs() {
  const names = Object.keys(datasets);
  const shown = [...all("[name=collection]")].map((radio) => radio.value);
  if (String(shown) !== String(names)) {
    const hadFocus = document.activeElement?.name === "collection";
    $("collections").replaceChildren($("collections").querySelector("legend"), ...names.map(tab));
    if (hadFocus) document.querySelector(`[name=collection][value="${CSS.escape(workspace.chosen)}"]`)?.focus();
  }
  for (const radio of all("[name=collection]")) radio.checked = radio.value === workspace.chosen;
}

function tab(name) {
  const radio = element("input", { type: "radio", name: "collection", value: name });
  radio.addEventListener("change", () => inTurn(() => show(name)));
  return element("label", {}, radio, datasets[name].title);
}

/** Follows other browser tabs: adds the collections that they create, and removes those that they drop. */
export function followOthers() {
  let isDue = false;
  const follow = async () => {
    isDue = false;
    await discover(workspace.db);
    if (Object.hasOwn(datasets, workspace.chosen)) showTabs();
    else await show();
  };
  workspace.db.on("change", ({ operation, local }) => {
    if (local || isDue || !/^(create|drop)/.test(operation)) return;
    isDue = true;
    inTurn(follow);
  });
}

/** Connects the controls of the query. */
export function setUpCollection() {
  for (const button of all("[data-days]")) {
    button.addEventListener("click", () => inTurn(() => (chooseRange(workspace.extent, button.dataset.days), query())));
  }
  $("query").addEventListener("submit", (event) => {
    event.preventDefault();
    inTurn(query);
  });
  $("series").addEventListener("change", () => inTurn(query));
  $("modes").addEventListener("change", () => inTurn(query));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => workspace.extent && inTurn(query));
}

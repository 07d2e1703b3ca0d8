// The section that moves data between databases and files.

import { onShow } from "./collection.js";
import { exportBuckets, exportOptions, exportRows } from "./export.js";
import { unlessBusy } from "./feedback.js";
import { importBuckets } from "./import.js";
import { $, all, workspace } from "./workspace.js";

const EXPORTS = {
  buckets: exportBuckets,
  options: exportOptions,
  csv: (name) => exportRows(name, "csv"),
  ndjson: (name) => exportRows(name, "ndjson"),
};

export function setUpExchange() {
  onShow((name) => ($("export-name").textContent = name));
  for (const button of all("[data-export]")) {
    button.addEventListener("click", () => unlessBusy(() => EXPORTS[button.dataset.export](workspace.chosen)));
  }
  $("bson").addEventListener("change", () => {
    const files = [...$("bson").files];
    $("bson").value = ""; // The same files may be chosen again.
    if (files.length > 0) unlessBusy(() => importBuckets(files));
  });
}

// Opens the database and brings the sections of the page to life.

import { open } from "timepail";
import { followOthers, setUpCollection, show } from "./collection.js";
import { setUpConsole } from "./console.js";
import { setUpExchange } from "./exchange.js";
import { inTurn, say, showError } from "./feedback.js";
import { setUpFill } from "./fill.js";
import { showCode } from "./format.js";
import { followLive, setUpLive } from "./live.js";
import { setUpOwn } from "./own.js";
import { setUpRemove } from "./remove.js";
import { setUpRetention } from "./retention.js";
import { setUpStorage } from "./storage.js";
import { $, all, workspace } from "./workspace.js";

async function start() {
  workspace.db = await open("demo", { worker: true });
  followLive();
  followOthers();
  await show(decodeURIComponent(location.hash.slice(1)) || "weather");
}

for (const button of all("[data-copy]")) {
  button.addEventListener("click", () => navigator.clipboard.writeText($(button.dataset.copy).textContent).then(() => say("Copied."), showError));
}
showCode($("sample"), $("sample").textContent);
setUpFill();
setUpCollection();
setUpOwn();
setUpLive();
setUpConsole();
setUpStorage();
setUpRetention();
setUpExchange();
setUpRemove();
inTurn(start);

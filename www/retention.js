// Limits the age and the size of a collection: sets expireAfterSeconds and maxBytes by collMod, and runs a retention pass on demand.

import { onShow, show } from "./collection.js";
import { datasets } from "./datasets.js";
import { inTurn, say, unlessBusy } from "./feedback.js";
import { bytes, number, showCode, toSource } from "./format.js";
import { $, workspace } from "./workspace.js";

const UNITS = [["years", 365 * 86_400], ["days", 86_400], ["hours", 3600], ["seconds", 1]];
const SIZES = [["MB", 1e6], ["kB", 1e3]];

export const ageOf = ({ expireAfterSeconds: seconds }) => (seconds === undefined ? "no limit" : inUnit(UNITS, seconds).join(" "));
export const budgetOf = ({ maxBytes }) => (maxBytes === undefined ? "no limit" : bytes(Number(maxBytes)));

/** The largest unit of which `amount` is a whole number. */
function inUnit(units, amount) {
  const [name, factor] = units.find(([, factor]) => amount % factor === 0) ?? units.at(-1);
  return [amount / factor, amount === factor ? name.replace(/s$/, "") : name];
}

/** The options of the collection that is shown. */
let limits = {};

/** Fills the form with the limits of a collection. */
async function showLimits(name) {
  const [{ options } = { options: {} }] = await workspace.db.listCollections({ name }).toArray();
  limits = options;
  const { expireAfterSeconds: seconds, maxBytes } = options;
  const [age, unit] = seconds === undefined ? ["", "days"] : inUnit(UNITS, seconds);
  $("keep-age").value = age;
  $("keep-unit").value = unit.endsWith("s") ? unit : `${unit}s`;
  const [size, sizeUnit] = maxBytes === undefined ? ["", "MB"] : inUnit(SIZES, Number(maxBytes));
  $("keep-size").value = size;
  $("keep-size-unit").value = sizeUnit;
  $("keep-name").textContent = name;
  await showCommand();
}

/** The command that the form describes. */
function commandOf() {
  const age = $("keep-age").valueAsNumber * Object.fromEntries(UNITS)[$("keep-unit").value];
  const size = $("keep-size").valueAsNumber * Object.fromEntries(SIZES)[$("keep-size-unit").value];
  return {
    collMod: workspace.chosen,
    expireAfterSeconds: Number.isNaN(age) ? "off" : Math.round(age),
    ...(Number.isNaN(size) ? limits.maxBytes !== undefined && { maxBytes: "off" } : { maxBytes: Math.round(size) }),
  };
}

async function showCommand() {
  const command = commandOf();
  showCode($("keep-code"), `await db.command(${toSource(command)});`);
  $("keep-hint").textContent = "";
  if (command.expireAfterSeconds === "off") return;
  const { timeField } = datasets[workspace.chosen].timeseries;
  const before = new Date(Date.now() - command.expireAfterSeconds * 1000);
  const old = await workspace.db.collection(workspace.chosen).countDocuments({ [timeField]: { $lt: before } });
  if (old > 0) $("keep-hint").textContent = `${number(old)} measurements are older than that. Each is deleted with its bucket, once the whole bucket is too old.`;
}

async function apply() {
  await workspace.db.command(commandOf());
  await show();
  say(`Applied to “${workspace.chosen}”.`);
}

async function expireNow() {
  const { nBuckets, nMeasurements, nBytes } = await workspace.db.command({ expire: 1 });
  const isNothing = Number(nBuckets) === 0;
  await show();
  $("expired").textContent = isNothing
    ? "Nothing exceeded the limits."
    : `${number(Number(nMeasurements))} measurements in ${number(Number(nBuckets))} buckets deleted, ${bytes(Number(nBytes))}.`;
}

export function setUpRetention() {
  onShow(async (name) => {
    $("expired").textContent = "";
    await showLimits(name);
  });
  $("keep").addEventListener("change", () => inTurn(showCommand));
  $("keep").addEventListener("submit", (event) => {
    event.preventDefault();
    unlessBusy(apply);
  });
  $("expire").addEventListener("click", () => unlessBusy(expireNow));
}

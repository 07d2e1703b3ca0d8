// Shows what is stored: the first bucket documents of a collection.

import { labelOf } from "./discover.js";
import { moment, number, showCode } from "./format.js";

const SHOWN = 5;
const COUNT_MAX = 1000;
const list = document.getElementById("bucket-list");

export async function showBuckets(db, name, { timeseries, fields }) {
  const buckets = await db.collection(`system.buckets.${name}`).find().limit(SHOWN).toArray();
  showCode(document.getElementById("buckets-code"), `db.collection("system.buckets.${name}").find().limit(${SHOWN})`);
  list.replaceChildren(...buckets.map((bucket) => card(bucket, timeseries, fields)));
}

function card(bucket, { timeField, metaField }, fields) {
  const { control, meta } = bucket;
  const count = control.count ?? Object.keys(bucket.data[timeField]).length;
  const item = element("li");
  const gauge = element("div", { className: "gauge", title: `${count} of at most ${COUNT_MAX} measurements` });
  gauge.style.setProperty("--level", count / COUNT_MAX);
  const title = element("b", { textContent: metaField ? labelOf(meta) : "one series" });
  const span = element("p", { className: "quiet figures" });
  const times = [moment(control.min[timeField]), element("br"), `to ${moment(control.max[timeField])}`];
  span.append(`${number(count)} measurements`, element("br"), ...times);
  const table = element("table");
  table.append(row("th", ["", "min", "max"]));
  for (const field of Object.keys(fields)) table.append(row("td", [field, bound(control.min[field]), bound(control.max[field])]));
  const details = element("details");
  const text = element("pre", { className: "code", tabIndex: 0, textContent: documentText(bucket) });
  details.append(element("summary", { textContent: "Document" }), text);
  item.append(gauge, title, span, table, details);
  return item;
}

const bound = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 2 }) : "–");

function row(cell, texts) {
  const line = element("tr");
  line.append(...texts.map((textContent, i) => element(i === 0 ? "th" : cell, { textContent })));
  return line;
}

/** The document as JSON with shortened columns: a plain one shows two measurements, a compressed one its size. */
function documentText(bucket) {
  const data = Object.fromEntries(Object.entries(bucket.data).map(([field, column]) => [field, cut(column)]));
  return JSON.stringify({ ...bucket, data }, null, 1).replace(/"(\w+)":/g, "$1:");
}

function cut(column) {
  if (column._bsontype === "Binary") return `${number(column.length())} bytes, compressed`;
  const entries = Object.entries(column);
  if (entries.length <= 2) return column;
  return { ...Object.fromEntries(entries.slice(0, 2)), "…": `${entries.length - 2} more` };
}

function element(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

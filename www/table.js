// Shows documents as a table: one column per field, with numbers aligned right.

import { toSource } from "./format.js";
import { element } from "./workspace.js";

const CELL_MAX = 80;

/** A table of `documents`, in a frame that scrolls and that the keyboard can scroll, too. */
export function tableOf(documents, label) {
  const fields = [...new Set(documents.flatMap((document) => Object.keys(document)))];
  const head = element("tr", {}, ...fields.map((field) => headOf(field, documents.every(({ [field]: value }) => value === undefined || isNumber(value)))));
  const body = documents.map((document) => element("tr", {}, ...fields.map((field) => cellOf(document[field]))));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  const frame = element("div", { className: "table", tabIndex: 0, role: "region", ariaLabel: label });
  frame.append(table);
  return frame;
}

const isNumber = (value) => typeof value === "number" || typeof value === "bigint";

const headOf = (field, isOfNumbers) => element("th", { scope: "col", textContent: field, className: isOfNumbers ? "number" : "" });

function cellOf(value) {
  const text = textOf(value);
  const cell = element("td", { textContent: text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text });
  if (text.length > CELL_MAX) cell.title = text;
  if (isNumber(value)) cell.className = "number";
  return cell;
}

/** A value as readable text: dates without the letters T and Z, strings without quotes. */
function textOf(value) {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 6, useGrouping: false });
  if (value instanceof Date) return value.toISOString().replace("T", " ").replace(/(:00)?\.000Z$/, "").replace("Z", "");
  return toSource(value);
}

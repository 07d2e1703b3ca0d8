// The console: parses a call of the API, runs it, and shows the result as a table, as documents or as a plan.

import { show, onShow } from "./collection.js";
import { examplesOf } from "./examples.js";
import { carryOut, explain, parseExpression } from "./expression.js";
import { inTurn } from "./feedback.js";
import { duration, number, toLines } from "./format.js";
import { showPlan } from "./plan.js";
import { tableOf } from "./table.js";
import { $, element, workspace } from "./workspace.js";

const ROWS_MAX = 500;
/** The maximum length of a document on one line, in characters. */
const WIDTH = 140;
/** The result that is shown, kept so that it can be shown in the other form. */
let last;

/** Runs the text in the box; `mode` is `run` or `explain`. */
async function run(mode) {
  $("console-error").textContent = "";
  try {
    const expression = parseExpression($("console-text").value);
    const start = performance.now();
    if (mode === "explain") {
      const reply = await explain(workspace.db, expression);
      answer(`Explained in ${duration(performance.now() - start)}`, "", showPlan(reply));
      last = undefined;
      return;
    }
    last = await rowsOf(carryOut(workspace.db, expression));
    last.ms = performance.now() - start;
    showRows();
    if (expression.writes) await show();
  } catch (error) {
    answer("", "", []);
    $("console-error").textContent = error.codeName ? `${error.codeName} (code ${error.code}): ${error.message}` : error.message;
    last = undefined;
  }
}

/** The documents of a cursor or a promise: `{ rows, isMore, isList }`. */
async function rowsOf(outcome) {
  if (typeof outcome.toArray === "function") {
    const rows = [];
    for await (const row of outcome) {
      if (rows.length === ROWS_MAX) return { rows, isMore: true, isList: true };
      rows.push(row);
    }
    return { rows, isList: true };
  }
  const value = await outcome;
  if (Array.isArray(value)) return { rows: value.slice(0, ROWS_MAX), isMore: value.length > ROWS_MAX, isList: true };
  return { rows: [value], isList: false };
}

function showRows() {
  if (!last) return;
  const { rows, isMore, isList, ms } = last;
  const asTable = document.querySelector("[name=console-form]:checked").value === "table";
  const isTabular = isList && rows.length > 0 && rows.every((row) => row !== null && typeof row === "object" && !Array.isArray(row));
  const text = isList ? rows.map((row) => toLines(row, "", WIDTH)).join("\n") : toLines(rows[0]);
  const documents = element("pre", { className: "code", tabIndex: 0, ariaLabel: "Result", textContent: text });
  const shown = rows.length === 0 ? [] : [asTable && isTabular ? tableOf(rows, "Result") : documents];
  const count = rows.length === 0 ? "No rows" : `${number(rows.length)} ${rows.length === 1 ? "row" : "rows"}`;
  answer(`${isList ? count : "Answered"} in ${duration(ms)}`, isMore ? `the first ${number(ROWS_MAX)}; there are more` : "", shown);
}

function answer(title, note, shown) {
  $("console-result").textContent = title;
  $("console-note").textContent = note;
  $("console-output").replaceChildren(...shown);
}

function propose(text) {
  $("console-text").value = text;
  $("console-error").textContent = "";
}

function showExamples(name, dataset) {
  const examples = examplesOf(name, dataset, workspace.extent);
  const isUntouched = $("console-text").value === ($("console-text").dataset.proposed ?? "");
  $("examples").replaceChildren(
    ...examples.map(({ title, text }) => {
      const button = element("button", { type: "button", textContent: title });
      button.addEventListener("click", () => {
        propose(text);
        inTurn(() => run("run"));
      });
      return button;
    }),
  );
  if (isUntouched) propose(examples[0].text);
  $("console-text").dataset.proposed = examples[0].text;
}

export function setUpConsole() {
  onShow(showExamples);
  $("console").addEventListener("submit", (event) => {
    event.preventDefault();
    inTurn(() => run("run"));
  });
  $("explain").addEventListener("click", () => inTurn(() => run("explain")));
  $("console-text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("console").requestSubmit();
  });
  $("to-console").addEventListener("click", () => {
    propose($("to-console").value);
    $("console-text").focus();
    $("console-text").scrollIntoView({ block: "center" });
  });
  $("console-forms").addEventListener("change", showRows);
}

// Decides which function goes into which half of the module, and divides it (split.mjs).
//
// The source marks functions that are loaded later (marks.mjs). The first half contains what its exports reach without going through these, the second
// what only these reach. Functions that both reach are in the first half; the second has a copy of short ones.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unread } from "./data.mjs";
import { Graph } from "./graph.mjs";
import { complaints, isCareful, markedLater } from "./marks.mjs";
import { Whole, halves, left } from "./split.mjs";
import { Stop, bin, must } from "./steps.mjs";
import { ownerOf } from "./symbols.mjs";

/** Functions that describe imports to wasm-bindgen at build time; it removes them. */
const DESCRIPTION = /^__wbindgen_describe_/;
/** Shorter functions are copied: a copy takes about as many bytes as a slot and its calls, which would be slower. */
const CALL_BYTES_MIN = 40;

/**
 * Divides `module`, which wasm-bindgen has made from `linked`; functions have the linker's symbols in both. Resolves to the files of the two halves
 * in `folder`, and to the errors in the marks.
 */
export async function divide(linked, module, folder, marks) {
  const graph = new Graph(readFileSync(linked));
  const whole = new Whole(readFileSync(module));
  const numbers = new Map([...whole.names()].map(([at, name]) => [name, at - whole.imported]));
  const inGraph = new Map([...graph.names].map(([at, name]) => [numbers.get(name), at]));
  /** Functions of the graph as numbers of `whole`; wasm-bindgen has dropped some. */
  const own = (functions) => new Set([...functions].map((at) => numbers.get(graph.names.get(at))).filter((at) => at >= 0));
  const files = ["first.wasm", "second.wasm"].map((name) => join(folder, name));
  const write = (options) => halves(whole, options).forEach((half, at) => writeFileSync(files[at], half));
  const leftIn = async (file) => {
    await must(bin("wasm-opt"), ["--remove-unused-module-elements", "-g", file, "-o", `${file}.left`]);
    return left(readFileSync(`${file}.left`));
  };

  const later = markedLater(graph, marks);
  const closed = own(later);
  // wasm-bindgen adds functions whose calls are not in the graph, so their callees are found in the remaining module.
  const roots = new Set([...graph.exports()].filter(([name]) => !DESCRIPTION.test(name)).map(([, at]) => at));
  let first, entered, inFirst;
  for (let before = -1; before < roots.size; ) {
    before = roots.size;
    first = graph.reach(roots, later);
    entered = [...own(first.calls)].filter((at) => closed.has(at));
    const places = own(first.places);
    const isKnown = (at) => !closed.has(at) && (places.has(at) || !inGraph.has(at));
    write({ entered, fills: (at) => (isKnown(at) ? 0 : undefined) });
    inFirst = await leftIn(files[0]);
    entered.forEach((at) => inFirst.delete(at));
    for (const at of inFirst) if (inGraph.has(at) && !first.functions.has(inGraph.get(at))) roots.add(inGraph.get(at));
    if ([...later].some((at) => roots.has(at))) throw new Stop("wasm-bindgen calls a function that is loaded later");
  }
  const wrong = complaints(graph, marks, [...first.functions].filter((at) => !later.has(at)), later);

  const second = graph.reach([...first.functions].filter((at) => later.has(at)));
  const places = own([...second.places, ...first.places]);
  const careful = new Set(entered.filter((at) => isCareful(ownerOf(graph.names.get(inGraph.get(at))))));
  const fills = (at) => (inFirst.has(at) ? 0 : places.has(at) ? 1 : undefined);
  write({ entered, careful, fills });
  const inSecond = await leftIn(files[1]);
  const lent = [...inSecond].filter((at) => inFirst.has(at) && whole.bodies[at].length >= CALL_BYTES_MIN);
  write({ entered, careful, fills, lent, ranges: unread(graph.symbols, first.constants) });
  return { files, wrong };
}

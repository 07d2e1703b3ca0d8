// Reads the marks in the Rust source: which functions belong to the second half of the module, and which may call them.
//
//   // Loaded later.               at the head of a file, its module and those below it; before a function, that function
//   // Loaded by now: <reason>.    in a function of the first half, or before it: it calls into the second half, which is there because …
//                                 before a type: its derived `==` does
//
// Marked functions move to the second half, together with everything that only they reach. A function whose name ends in `_if_loaded` does nothing and returns 0, if
// anything, until that half is loaded, so calls of it need no reason.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Stop, filesUnder } from "./steps.mjs";
import { droppedBy, ownerOf } from "./symbols.mjs";

const MARK = /^\s*\/\/ Loaded (later|by now)\b(.*)$/;
const FUNCTION = /^\s*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern "C" )*fn (\w+)/;
const BLOCK = /^impl\b/;
const TYPE = /^(?:pub(?:\([^)]*\))? )?(?:enum|struct) (\w+)/;
/** The lines that may be between a mark and its function. */
const BETWEEN = /^\s*(?:\/\/|#\[)/;

/** The marks in all files under `folder`: `{ place, module, name, isLater }`. `name` is missing if the mark is for a whole module. */
export function marksUnder(folder) {
  return filesUnder(folder)
    .filter((file) => file.endsWith(".rs"))
    .flatMap((file) => marksIn(file, readFileSync(join(folder, file), "utf8")));
}

/** The marks of one file. */
export function marksIn(file, text) {
  const module = file.replace(/(^|\/)(mod|lib)\.rs$|\.rs$/, "").replaceAll("/", "::");
  const lines = text.split("\n");
  const marks = [];
  let [type, inside] = ["", undefined];
  lines.forEach((line, at) => {
    if (BLOCK.test(line)) type = typeOf(lines.slice(at, at + 6).join(" "));
    else if (/^\}/.test(line)) type = "";
    const named = (line) => [/^\s/.test(line) ? type : "", FUNCTION.exec(line)[1]].filter(Boolean).join("::");
    if (FUNCTION.test(line)) inside = named(line);
    const found = MARK.exec(line);
    if (!found) return;
    const place = `src/${file}:${at + 1}`;
    const isLater = found[1] === "later";
    if (isLater ? found[2] !== "." : !/^: .+/.test(found[2])) throw new Stop(`${place}: a mark reads "// Loaded later." or "// Loaded by now: <reason>."`);
    const next = lines.slice(at + 1).find((line) => !BETWEEN.test(line)) ?? "";
    const isHead = !lines.slice(0, at).some((line) => line !== "" && !line.startsWith("//"));
    if (FUNCTION.test(next)) marks.push({ place, module, name: named(next), isLater });
    else if (isLater && isHead) marks.push({ place, module, isLater });
    else if (!isLater && TYPE.test(next)) marks.push({ place, module, name: `${TYPE.exec(next)[1]}::eq`, isLater });
    else if (!isLater && inside) marks.push({ place, module, name: inside, isLater });
    else throw new Stop(`${place}: the mark stands neither before a function nor at the head of the file`);
  });
  return marks;
}

/** The name of the type in the head of an impl block: `Engine` for `impl<'a> Storage for Engine<'a> {`. */
function typeOf(head) {
  let open = 0;
  const plain = [...head.split("{")[0].replaceAll("->", "")].filter((char) => (char === "<" ? ++open : char === ">" ? open-- : open) === 0).join("");
  const [, type] = /^impl\s+(?:.*\bfor\s+)?(.*?)\s*(?:$|\bwhere\b)/.exec(plain) ?? [];
  return /(\w+)\W*$/.exec(type ?? "")?.[1] ?? "";
}

/** The functions of `graph` that are marked to be in the second half, and what drops their closures and futures. */
export function markedLater(graph, marks) {
  const later = marks.filter(({ isLater }) => isLater);
  const isMarked = (owner) => later.some((mark) => covers(mark, owner));
  return new Set([...graph.functions.keys()].filter((at) => isMarked(ownerOf(graph.names.get(at)) ?? droppedBy(graph.names.get(at)))));
}

function covers(mark, owner) {
  if (!owner) return false;
  if (mark.name !== undefined) return mark.module === owner.module && mark.name === owner.name;
  return owner.module === mark.module || owner.module.startsWith(`${mark.module}::`);
}

/** True for a function that may be called before the second half is loaded. */
export const isCareful = (owner) => owner?.name.endsWith("_if_loaded") ?? false;

/**
 * The errors in the marks of a module whose functions `first` are in the first half and whose functions `later` are marked for the second, as sentences:
 * marks without a function, and calls that would trap if the second half is not loaded.
 */
export function complaints(graph, marks, first, later) {
  const owners = new Map([...graph.functions.keys()].map((at) => [at, ownerOf(graph.names.get(at))]));
  const shown = ({ module, name }) => [module, name].filter(Boolean).join("::");
  const all = [];
  for (const mark of marks.filter(({ isLater }) => isLater)) {
    if (![...owners.values()].some((owner) => covers(mark, owner)))
      all.push(`${mark.place}: ${shown(mark)} is not in the module: it was renamed, or inlined where it is called (#[inline(never)])`);
  }
  const reasons = marks.filter(({ isLater }) => !isLater);
  // The code of an inlined function is in its caller, which is usually in the same file.
  const inlined = reasons.filter((mark) => ![...owners.values()].some((owner) => covers(mark, owner)));
  const used = new Set();
  const entrances = new Map();
  for (const [caller, callee] of callsInto(graph, first, later, owners)) {
    const owner = owners.get(caller);
    const given = [...reasons.filter((mark) => covers(mark, owner)), ...inlined.filter(({ module }) => module === owner.module)];
    given.forEach((mark) => used.add(mark));
    if (given.length === 0) entrances.set(shown(owner), (entrances.get(shown(owner)) ?? new Set()).add(shown(owners.get(callee))));
  }
  for (const [caller, callees] of entrances)
    all.push(`${caller} calls ${[...callees].join(", ")} of the second half: say in it why that is loaded by then ("// Loaded by now: …"), and await Env::complete if it is not`);
  for (const mark of reasons.filter((mark) => !used.has(mark)))
    all.push(`${mark.place}: ${shown(mark)} calls nothing of the second half; if it was inlined, the reason belongs to its caller`);
  return all;
}

/** Functions of the crate in the first half, each with a function of the second half that it reaches only through code and constants of other crates. */
function callsInto(graph, first, later, owners) {
  const named = ({ calls, places, constants }) => [...calls, ...places].map((at) => ["function", at]).concat([...constants].map((at) => ["constant", at]));
  const pairs = [];
  for (const caller of first) {
    if (!owners.get(caller)) continue;
    const seen = new Set();
    const next = named(graph.functions.get(caller));
    for (const [kind, at] of next) {
      if (seen.has(`${kind}${at}`)) continue;
      seen.add(`${kind}${at}`);
      if (kind === "constant") next.push(...named(graph.constants.get(at) ?? { calls: [], places: [], constants: [] }));
      else if (later.has(at)) pairs.push([caller, at]);
      else if (!owners.get(at) && graph.functions.has(at)) next.push(...named(graph.functions.get(at)));
    }
  }
  // What drops a closure or future is called only where there is one, and who made it has given the reason.
  return pairs.filter(([, callee]) => owners.get(callee) && !isCareful(owners.get(callee)));
}

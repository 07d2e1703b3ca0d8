// Turns copies of a few words into calls of small functions.
//
// The compiler moves values of known length (a vector, a result) either word by word, which takes ten bytes a word at 7000 places, or by the
// instruction `memory.copy`, for which engines call a function of theirs that takes any length. So the compiler writes `memory.copy`
// (`-max-store-memcpy=1` in wasm-pack.toml), and here it becomes a call of a function for that length, of the module: as short, and nearly
// as fast as the words.

/** Longer copies keep the instruction: their time is that of the copy. */
const BYTES_MAX = 76;

/** Words of a copy: how many bytes, their type, and what loads and stores them. */
const WORDS = [
  [16, "v128", "v128.load", "v128.store"],
  [8, "i64", "i64.load", "i64.store"],
  [4, "i32", "i32.load", "i32.store"],
  [2, "i32", "i32.load16_u", "i32.store16"],
  [1, "i32", "i32.load8_u", "i32.store8"],
];

/** `text`, a module as wasm-dis prints it (an expression a line, its operands indented by one more), with calls in place of short copies. */
export function withShortCopies(text) {
  const lines = text.split("\n");
  const lengths = new Set();
  /** The copies around the line, by their lines. */
  const open = [];
  for (const [at, line] of lines.entries()) {
    const indent = indentOf(line);
    if (line.startsWith("(memory.copy", indent)) open.push({ at, indent });
    else if (line[indent] === ")" && indent === open.at(-1)?.indent) {
      const copy = open.pop();
      // The length is the last operand.
      const length = Number(/^ *\(i32\.const (\d+)\)$/.exec(lines[at - 1])?.[1] ?? Infinity);
      if (length > BYTES_MAX) continue;
      lengths.add(length);
      lines[copy.at] = `(call $copy${length}`;
      lines[at - 1] = "";
    }
  }
  const end = lines.findLastIndex((line) => line === ")");
  return [...lines.slice(0, end), ...[...lengths].map(copyOf), ...lines.slice(end)].join("\n");
}

function indentOf(line) {
  let indent = 0;
  while (line[indent] === " ") indent++;
  return indent;
}

/** A function that copies `length` bytes. It loads all before it stores: source and target may overlap. */
function copyOf(length) {
  const words = [];
  for (let at = 0; at < length; at += words.at(-1).bytes) {
    const [bytes, type, load, store] = WORDS.find(([bytes]) => bytes <= length - at);
    words.push({ at, bytes, type, load, store, local: `$${words.length + 2}` });
  }
  const locals = words.map(({ type, local }) => `(local ${local} ${type})`);
  const loads = words.map(({ at, load, local }) => `(local.set ${local} (${load} offset=${at} align=1 (local.get $1)))`);
  const stores = words.map(({ at, store, local }) => `(${store} offset=${at} align=1 (local.get $0) (local.get ${local}))`);
  return `(func $copy${length} (param $0 i32) (param $1 i32) ${[...locals, ...loads, ...stores].join(" ")})`;
}

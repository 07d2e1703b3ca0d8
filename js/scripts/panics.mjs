// Cuts down the code that composes the message of a panic, which nobody can read.
//
// A panic of Rust composes a message, writes it to a standard error that this target does not have, and ends in `unreachable`. What
// stays is the trap. So the functions that do this become a trap from the start: the page sees the same, the code behind them is
// unreachable, and wasm-opt drops it and what was handed to it. With a precompiled standard library there is no other way.

import { CODE, CUSTOM, DATA, Reader, bodiesOf, importedFunctions, leb, prefixed, sectionsOf } from "./wasm.mjs";

/** No locals, `unreachable`, `end`. */
const TRAP = Buffer.from([0, 0x00, 0x0b]);

/** Functions of Rust's own libraries that do not return; names are mangled in either of the two ways. */
const PANICS = [
  /(4core|5alloc|3std)9panicking/,
  /4core4cell\d+panic_|4core4cell4lazy\d+panic_/,
  /4core6option13(unwrap|expect)_failed/,
  /4core6result13unwrap_failed/,
  /4core5slice5index\d+slice_\w*fail/,
  /4core5slice\w*len_mismatch_fail/,
  /4core5slice4sort\w*panic_on_ord_violation/,
  /4core3str\d+slice_error_fail/,
  /5alloc5alloc18handle_alloc_error/,
  /5alloc7raw_vec(17capacity_overflow|12handle_error)/,
  /5alloc3vec\w*13assert_failed/,
  /17rust_begin_unwind|26___rust_alloc_error_handler/,
];

/** The names of functions by their number. */
function functionNames(bytes, sections) {
  const names = new Map();
  for (const { id, start, end } of sections) {
    const reader = new Reader(bytes, start);
    if (id !== CUSTOM || reader.name() !== "name") continue;
    while (reader.at < end) {
      const kind = bytes[reader.at++];
      const behind = reader.number() + reader.at;
      if (kind === 1) for (let left = reader.number(); left > 0; left--) names.set(reader.number(), reader.name());
      reader.at = behind;
    }
  }
  return names;
}

/** The bytes of every data segment with their address in memory. */
function segmentsOf(bytes, section) {
  const reader = new Reader(bytes, section.start);
  const segments = [];
  for (let left = reader.number(); left > 0; left--) {
    // Memory 0, `i32.const` address, `end`: what the linker writes for memory that nobody shares.
    if (reader.number() !== 0 || bytes[reader.at++] !== 0x41) throw new Error("a data segment of another kind");
    const address = reader.number();
    reader.at++;
    segments.push({ address, bytes: reader.prefixed() });
  }
  return segments;
}

/** Blanks in `bytes` every place in the source, `{ file, length, line, column }`, and its file name: panics name them, nobody else. */
function blankLocations(bytes, section) {
  const segments = segmentsOf(bytes, section);
  const at = (address, length) => {
    const segment = segments.find((one) => one.address <= address && address + length <= one.address + one.bytes.length);
    return segment?.bytes.subarray(address - segment.address, address - segment.address + length);
  };
  const files = new Map();
  for (const { address, bytes: data } of segments) {
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    for (let offset = (4 - (address % 4)) % 4; offset + 16 <= data.length; offset += 4) {
      const [file, length, line, column] = [0, 4, 8, 12].map((behind) => view.getUint32(offset + behind, true));
      if (length < 5 || length > 300 || line === 0 || line > 1e5 || column === 0 || column > 1e3) continue;
      const name = at(file, length);
      if (!name || !/^[\w/.@+-]+\.rs$/.test(Buffer.from(name).toString("latin1"))) continue;
      files.set(file, name);
      data.fill(0, offset, offset + 16);
    }
  }
  for (const name of files.values()) name.fill(0);
}

/**
 * The module with a trap in place of every function that panics, without the places they would have named, and how many functions
 * there were. `bytes` must still have the names of functions.
 */
export function trapPanics(bytes) {
  const sections = sectionsOf(bytes);
  const names = functionNames(bytes, sections);
  const code = sections.find(({ id }) => id === CODE);
  const data = sections.find(({ id }) => id === DATA);
  const imported = importedFunctions(bytes, sections);
  let trapped = 0;
  const bodies = bodiesOf(bytes, sections).map((body, at) => {
    const name = names.get(imported + at) ?? "";
    // What does not return ends in `unreachable`, `end`. A function that does return is none of these, whatever its name.
    const panics = body.at(-2) === 0x00 && PANICS.some((pattern) => pattern.test(name));
    if (panics) trapped++;
    return prefixed(panics ? TRAP : body);
  });
  const contents = Buffer.concat([leb(bodies.length), ...bodies]);
  const tail = Buffer.from(bytes.subarray(code.end));
  if (data) blankLocations(tail, { start: data.start - code.end });
  const module = Buffer.concat([bytes.subarray(0, code.head), Buffer.from([CODE]), prefixed(contents), tail]);
  return { module, trapped };
}
